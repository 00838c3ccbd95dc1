import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { CaseInput } from "../gradient-check.js";
import { binary, type FamilyCases, type OpCases, on, positive, signed, unary } from "./builders.js";

/** Numbers inside (−1, 1), away from its ends. */
const inner = (shape: readonly number[], seed: number): CaseInput => ({
  shape,
  values: signed(shape, seed).values.map((value) => value * 0.8),
});

const of = (
  name: string,
  apply: (x: Tensor) => Tensor,
  make: typeof signed = signed,
): OpCases["cases"][number] => on(name, [[2, 3]], ([x]) => apply(x as Tensor), make);

const checked = (...cases: OpCases["cases"]): OpCases => ({ second: "checked", cases });

/** Functions of one number, and activations. */
export const functionCases: FamilyCases = {
  exp: unary(ops.exp),
  log: unary(ops.log, positive),
  reciprocal: unary(ops.reciprocal, positive),
  rsqrt: unary(ops.rsqrt, positive),
  expm1: unary(ops.expm1),
  log1p: unary(ops.log1p, positive),
  log2: unary(ops.log2, positive),
  log10: unary(ops.log10, positive),
  sin: unary(ops.sin),
  cos: unary(ops.cos),
  tan: unary(ops.tan),
  asin: unary(ops.asin, inner),
  acos: unary(ops.acos, inner),
  atan: unary(ops.atan),
  atan2: binary(ops.atan2, positive),
  sinh: unary(ops.sinh),
  cosh: unary(ops.cosh),
  tanh: unary(ops.tanh),
  erf: unary(ops.erf),
  erfinv: unary(ops.erfinv, inner),
  pow: checked(
    ...[0, 1, 2, 3].map((c) => of(`to the power ${c}`, (x) => ops.pow(x, c))),
    ...[0.5, -2, 2.3].map((c) => of(`to the power ${c}`, (x) => ops.pow(x, c), positive)),
    on("of tensors", [[2, 3], [3]], ([x, y]) => ops.pow(x as Tensor, y as Tensor), positive),
  ),
  softplus: checked(
    of("as it is", (x) => ops.softplus(x)),
    of("steep, with a threshold", (x) => ops.softplus(x, { beta: 5, threshold: 2 })),
  ),
  sigmoid: unary(ops.sigmoid),
  relu: unary(ops.relu),
  silu: unary(ops.silu),
  gelu: checked(
    of("exact", (x) => ops.gelu(x.mul(2))),
    of("by tanh", (x) => ops.gelu(x.mul(2), { approximate: "tanh" })),
  ),
  elu: checked(
    of("of 1", (x) => ops.elu(x)),
    of("of 0.3", (x) => ops.elu(x, 0.3)),
  ),
  leakyRelu: checked(of("0.2", (x) => ops.leakyRelu(x, 0.2).square())),
  clamp: checked(
    of("both ends", (x) => ops.clamp(x, { min: -0.5, max: 0.4 }).square()),
    of("below", (x) => ops.clamp(x, { min: 0.1 }).square()),
  ),
  hardtanh: checked(of("both ends", (x) => ops.hardtanh(x, { min: -0.5, max: 0.4 }).square())),
  prelu: checked(
    on("one weight", [[2, 3], []], ([x, w]) => ops.prelu(x as Tensor, w as Tensor)),
    on("a weight a channel", [[2, 2, 3], [3]], ([x, w]) => ops.prelu(x as Tensor, w as Tensor)),
  ),
};
