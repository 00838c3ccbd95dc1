import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { binary, type FamilyCases, on, positive, unary, withNumber } from "./builders.js";

type Triple = readonly [Tensor, Tensor, Tensor];

const combined = (op: typeof ops.addcmul): FamilyCases[string] => ({
  second: "checked",
  cases: [
    on(
      "same shapes",
      [
        [2, 3],
        [2, 3],
        [2, 3],
      ],
      (x) => op(...(x as unknown as Triple)),
      positive,
    ),
    on(
      "broadcast, by -0.3",
      [[3], [2, 1], [2, 3]],
      (x) => op(...(x as unknown as Triple), -0.3),
      positive,
    ),
  ],
});

/** Arithmetic. */
export const elementwiseCases: FamilyCases = {
  add: binary(ops.add),
  sub: binary(ops.sub),
  mul: binary(ops.mul),
  div: binary(ops.div, positive),
  scale: withNumber(ops.scale),
  addScalar: withNumber(ops.addScalar),
  sqrt: unary(ops.sqrt, positive),
  square: unary(ops.square),
  abs: unary(ops.abs),
  sign: unary(ops.sign),
  floor: unary(ops.floor),
  ceil: unary(ops.ceil),
  round: unary(ops.round),
  // For equal operands central differences give the mean of both slopes, as torch does.
  maximum: binary(ops.maximum),
  minimum: binary(ops.minimum),
  addcmul: combined(ops.addcmul),
  addcdiv: combined(ops.addcdiv),
  keepWhere: {
    second: "checked",
    cases: [
      on("a mask", [[2, 3]], ([x]) => ops.keepWhere(x as Tensor, ops.gt(x as Tensor, 0))),
      on("a mask that broadcasts x", [[3]], ([x], runtime) =>
        ops.keepWhere(x as Tensor, runtime.tensor(Uint32Array.of(1, 0), [2, 1])),
      ),
    ],
  },
  maskedFill: {
    second: "checked",
    cases: [
      on("a mask", [[2, 3]], ([x]) =>
        ops.maskedFill(x as Tensor, ops.lt(x as Tensor, 0), 5).square(),
      ),
    ],
  },
  where: {
    second: "checked",
    cases: [
      on("two tensors", [[2, 3], [3]], ([a, b]) => {
        const [x, y] = [a as Tensor, b as Tensor];
        return ops.where(ops.gt(x, y), x, y).square();
      }),
    ],
  },
};
