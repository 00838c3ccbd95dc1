import * as kernels from "@halfstep/kernels";
import type { Op } from "../op.js";
import type { Tensor } from "../tensor.js";
import { eq, ge, keepWhere, le, logicalAnd, ne } from "./comparison.js";
import { cut, pointwise, unary } from "./pointwise.js";

export const exp: Op<null> = unary(kernels.exp, "float32", (g, _, y) => g.mul(y));
export const log: Op<null> = unary(kernels.log, "float32", (g, x) => g.div(x));
export const reciprocal: Op<null> = unary(kernels.reciprocal, "float32", (g, _, y) =>
  g.mul(y.square()).neg(),
);
export const tanh: Op<null> = unary(kernels.tanh, "none", (g, _, y) =>
  g.mul(y.square().neg().add(1)),
);

/** exp(x) − 1, relatively exact near 0. */
export const expm1: Op<null> = unary(kernels.expm1, "float32", (g, _, y) => g.mul(y.add(1)));

/** log(1 + x), relatively exact near 0. */
export const log1p: Op<null> = unary(kernels.log1p, "float32", (g, x) => g.div(x.add(1)));
export const log2: Op<null> = unary(kernels.log2, "float32", (g, x) => g.div(x.mul(Math.LN2)));
export const log10: Op<null> = unary(kernels.log10, "float32", (g, x) => g.div(x.mul(Math.LN10)));

/** 1 / √x */
export const rsqrt: Op<null> = unary(kernels.rsqrt, "float32", (g, _, y) =>
  g.mul(y.mul(y).mul(y)).mul(-0.5),
);

export const sin: Op<null> = unary(kernels.sin, "none", (g, x) => g.mul(cos([x], null)));
export const cos: Op<null> = unary(kernels.cos, "none", (g, x) => g.mul(sin([x], null)).neg());
export const tan: Op<null> = unary(kernels.tan, "float32", (g, _, y) => g.mul(y.square().add(1)));
export const asin: Op<null> = unary(kernels.asin, "float32", (g, x) => g.mul(unitRoot(x)));
export const acos: Op<null> = unary(kernels.acos, "float32", (g, x) => g.mul(unitRoot(x)).neg());
export const atan: Op<null> = unary(kernels.atan, "none", (g, x) => g.div(x.square().add(1)));
export const sinh: Op<null> = unary(kernels.sinh, "float32", (g, x) => g.mul(cosh([x], null)));
export const cosh: Op<null> = unary(kernels.cosh, "float32", (g, x) => g.mul(sinh([x], null)));

/** 1 / √(1 − x²) */
const unitRoot = (x: Tensor): Tensor => rsqrt([x.square().neg().add(1)], null);

/** The error function. */
export const erf: Op<null> = unary(kernels.erf, "none", (g, x) =>
  g.mul(
    x
      .square()
      .neg()
      .exp()
      .mul(2 / Math.sqrt(Math.PI)),
  ),
);

/** The inverse of the error function, on [−1, 1]. */
export const erfinv: Op<null> = unary(kernels.erfinv, "float32", (g, _, y) =>
  g.mul(
    y
      .square()
      .exp()
      .mul(Math.sqrt(Math.PI) / 2),
  ),
);

/** [y, x]: the angle of the point (x, y), from −π to π. */
export const atan2: Op<null> = pointwise<null>({
  expression: kernels.atan2,
  castPolicy: "promote",
  backward({ inputs, gradients, needs }) {
    const [y, x] = inputs as [Tensor, Tensor];
    const squares = y.square().add(x.square());
    // At the origin, where there is no angle, torch's gradient is 0, not 0 / 0.
    const scaled = (gradients[0] as Tensor).div(
      squares.maskedFill(eq(squares, 0), Number.POSITIVE_INFINITY),
    );
    return [needs[0] ? scaled.mul(x) : undefined, needs[1] ? scaled.mul(y).neg() : undefined];
  },
});

const powScalar: Op<number> = pointwise<number>({
  expression: kernels.pow,
  castPolicy: "float32",
  constants: (exponent) => [exponent],
  backward: ({ inputs, gradients, attributes: c }) => {
    const g = gradients[0] as Tensor;
    // At 0 the slope of a constant is 0, not 0 · ∞.
    return [c === 0 ? cut(g) : g.mul(powScalar([inputs[0] as Tensor], c - 1).mul(c))];
  },
});

const powTensor: Op<null> = pointwise<null>({
  expression: kernels.powTensor,
  name: "pow",
  castPolicy: "float32",
  backward({ inputs, outputs, gradients, needs }) {
    const [x, y] = inputs as [Tensor, Tensor];
    const g = gradients[0] as Tensor;
    const slope = (): Tensor => keepWhere([y.mul(pow(x, y.sub(1))), ne(y, 0)], null);
    // As in torch, powers of 0 do not change with an exponent from 0 on, though log 0 is infinite.
    const growth = (): Tensor => {
      const isFlat = logicalAnd([eq(x, 0), ge(y, 0)], null);
      const logarithm = (outputs[0] as Tensor).mul(log([x], null));
      return keepWhere([logarithm, le(isFlat, 0)], null);
    };
    return [needs[0] ? g.mul(slope()) : undefined, needs[1] ? g.mul(growth()) : undefined];
  },
});

/** x to the power of a number or of another tensor, with the special cases of C. */
export const pow = (x: Tensor, exponent: number | Tensor): Tensor =>
  typeof exponent === "number" ? powScalar([x], exponent) : powTensor([x, exponent], null);

export interface SoftplusOptions {
  /** Default 1. */
  readonly beta?: number;
  /** The result is x itself where β x is above this. Default 20. */
  readonly threshold?: number;
}

type Softplus = Required<SoftplusOptions>;

const softplusOp: Op<Softplus> = pointwise<Softplus>({
  expression: kernels.softplus,
  castPolicy: "float32",
  constants: ({ beta, threshold }) => [beta, threshold],
  backward: ({ inputs, gradients, attributes }) => [
    softplusBackward([gradients[0] as Tensor, inputs[0] as Tensor], attributes),
  ],
});

const softplusBackward: Op<Softplus> = pointwise<Softplus>({
  expression: kernels.softplusBackward,
  castPolicy: "none",
  constants: ({ beta, threshold }) => [beta, threshold],
  backward({ inputs, gradients, needs, attributes }) {
    const [g, x] = inputs as [Tensor, Tensor];
    const v = gradients[0] as Tensor;
    const { beta, threshold } = attributes;
    const curvature = (): Tensor => {
      const s = x.mul(beta).sigmoid();
      const bend = s.sub(s.square()).mul(beta);
      return keepWhere([v.mul(g).mul(bend), le(x.mul(beta), threshold)], null);
    };
    return [
      needs[0] ? softplusBackward([v, x], attributes) : undefined,
      needs[1] ? curvature() : undefined,
    ];
  },
});

/** log(1 + exp(β x)) / β */
export const softplus = (x: Tensor, { beta = 1, threshold = 20 }: SoftplusOptions = {}): Tensor =>
  softplusOp([x], { beta, threshold });
