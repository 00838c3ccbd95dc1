import * as ops from "../../src/ops/index.js";
import { binary, type FamilyCases, positive, unary, withNumber } from "./builders.js";

/** Arithmetic and functions of one number. */
export const elementwiseCases: FamilyCases = {
  add: binary(ops.add),
  sub: binary(ops.sub),
  mul: binary(ops.mul),
  div: binary(ops.div, positive),
  scale: withNumber(ops.scale),
  addScalar: withNumber(ops.addScalar),
  exp: unary(ops.exp),
  log: unary(ops.log, positive),
  sqrt: unary(ops.sqrt, positive),
  square: unary(ops.square),
  reciprocal: unary(ops.reciprocal, positive),
  tanh: unary(ops.tanh),
  sigmoid: unary(ops.sigmoid),
  relu: unary(ops.relu),
};
