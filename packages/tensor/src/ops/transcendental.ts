import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import { either, number, optionals, tensor } from "../arguments/kinds.js";
import { type CallableOp, callable, type Op, type UnaryOp } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, ge, keepWhere, le, logicalAnd, maskedFill, ne } from "./comparison.js";
import { cut, pointwise, unary } from "./pointwise.js";

/** eˣ, computed in float32 under autocast. */
export const exp: UnaryOp = unary(kernels.exp, "float32", (g, _, y) => g.mul(y));
/** The natural logarithm, computed in float32 under autocast; −∞ at 0 and NaN below. */
export const log: UnaryOp = unary(kernels.log, "float32", (g, x) => g.div(x));
/** 1 / x, computed in float32 under autocast. */
export const reciprocal: UnaryOp = unary(kernels.reciprocal, "float32", (g, _, y) =>
  g.mul(y.square()).neg(),
);
/** The hyperbolic tangent. */
export const tanh: UnaryOp = unary(kernels.tanh, "none", (g, _, y) =>
  g.mul(y.square().neg().add(1)),
);

/** exp(x) − 1, relatively exact near 0. */
export const expm1: UnaryOp = unary(kernels.expm1, "float32", (g, _, y) => g.mul(y.add(1)));

/** log(1 + x), relatively exact near 0. */
export const log1p: UnaryOp = unary(kernels.log1p, "float32", (g, x) => g.div(x.add(1)));
/** The logarithm to base 2, computed in float32 under autocast. */
export const log2: UnaryOp = unary(kernels.log2, "float32", (g, x) => g.div(x.mul(Math.LN2)));
/** The logarithm to base 10, computed in float32 under autocast. */
export const log10: UnaryOp = unary(kernels.log10, "float32", (g, x) => g.div(x.mul(Math.LN10)));

/** 1 / √x */
export const rsqrt: UnaryOp = unary(kernels.rsqrt, "float32", (g, _, y) =>
  g.mul(y.mul(y).mul(y)).mul(-0.5),
);

/** The sine of an angle in radians. */
export const sin: UnaryOp = unary(kernels.sin, "none", (g, x) => g.mul(cos(x)));
/** The cosine of an angle in radians. */
export const cos: UnaryOp = unary(kernels.cos, "none", (g, x) => g.mul(sin(x)).neg());
/** The tangent of an angle in radians. */
export const tan: UnaryOp = unary(kernels.tan, "float32", (g, _, y) => g.mul(y.square().add(1)));
/** The angle from −π/2 to π/2 whose sine is x; NaN outside [−1, 1]. */
export const asin: UnaryOp = unary(kernels.asin, "float32", (g, x) => g.mul(unitRoot(x)));
/** The angle from 0 to π whose cosine is x; NaN outside [−1, 1]. */
export const acos: UnaryOp = unary(kernels.acos, "float32", (g, x) => g.mul(unitRoot(x)).neg());
/** The angle from −π/2 to π/2 whose tangent is x. */
export const atan: UnaryOp = unary(kernels.atan, "none", (g, x) => g.div(x.square().add(1)));
/** The hyperbolic sine. */
export const sinh: UnaryOp = unary(kernels.sinh, "float32", (g, x) => g.mul(cosh(x)));
/** The hyperbolic cosine. */
export const cosh: UnaryOp = unary(kernels.cosh, "float32", (g, x) => g.mul(sinh(x)));

/** 1 / √(1 − x²) */
const unitRoot = (x: Tensor): Tensor => rsqrt(x.square().neg().add(1));

/** The error function. */
export const erf: UnaryOp = unary(kernels.erf, "none", (g, x) =>
  g.mul(
    x
      .square()
      .neg()
      .exp()
      .mul(2 / Math.sqrt(Math.PI)),
  ),
);

/** The inverse of the error function, on [−1, 1]. */
export const erfinv: UnaryOp = unary(kernels.erfinv, "float32", (g, _, y) =>
  g.mul(
    y
      .square()
      .exp()
      .mul(Math.sqrt(Math.PI) / 2),
  ),
);

const atan2Op: Op<null> = pointwise<null>({
  expression: kernels.atan2,
  castPolicy: "promote",
  backward({ inputs, gradients, needs }) {
    const [y, x] = inputs as [Tensor, Tensor];
    const squares = y.square().add(x.square());
    // At the origin the angle is undefined: torch's gradient there is 0, not 0 / 0.
    const scaled = (gradients[0] as Tensor).div(
      maskedFill(squares, eq(squares, 0), Number.POSITIVE_INFINITY),
    );
    return [needs[0] ? scaled.mul(x) : undefined, needs[1] ? scaled.mul(y).neg() : undefined];
  },
});

/** The angle of the point (x, y), from −π to π; the operands broadcast. */
export const atan2: CallableOp<(y: Tensor, x: Tensor) => Tensor, null> = callable(
  atan2Op,
  { y: tensor, x: tensor },
  (y: Tensor, x: Tensor) => atan2Op.apply([y, x], null),
);

const powScalar: Op<number> = pointwise<number>({
  expression: kernels.pow,
  castPolicy: "float32",
  constants: (exponent) => [exponent],
  backward: ({ inputs, gradients, attributes: c }) => {
    const g = gradients[0] as Tensor;
    // At 0 the slope of a constant is 0, not 0 · ∞.
    return [c === 0 ? cut(g) : g.mul(powScalar.apply([inputs[0] as Tensor], c - 1).mul(c))];
  },
});

const powTensor: Op<null> = pointwise<null>({
  expression: kernels.powTensor,
  name: "pow",
  castPolicy: "float32",
  backward({ inputs, outputs, gradients, needs }) {
    const [x, y] = inputs as [Tensor, Tensor];
    const g = gradients[0] as Tensor;
    const slope = (): Tensor => keepWhere(y.mul(pow(x, y.sub(1))), ne(y, 0));
    // As in torch, the gradient by an exponent ≥ 0 is 0 where the base is 0, although log 0 is infinite.
    const growth = (): Tensor => {
      const isFlat = logicalAnd(eq(x, 0), ge(y, 0));
      const logarithm = (outputs[0] as Tensor).mul(log(x));
      return keepWhere(logarithm, le(isFlat, 0));
    };
    return [needs[0] ? g.mul(slope()) : undefined, needs[1] ? g.mul(growth()) : undefined];
  },
});

/** x to the power of a number or of another tensor, with the special cases of C. */
export const pow: (x: Tensor, exponent: number | Tensor) => Tensor = checked(
  "pow",
  { x: tensor, exponent: either(tensor, number) },
  (x: Tensor, exponent: number | Tensor): Tensor =>
    typeof exponent === "number"
      ? powScalar.apply([x], exponent)
      : powTensor.apply([x, exponent], null),
);

/** Options of {@link softplus}. */
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
    softplusBackward.apply([gradients[0] as Tensor, inputs[0] as Tensor], attributes),
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
      return keepWhere(v.mul(g).mul(bend), le(x.mul(beta), threshold));
    };
    return [
      needs[0] ? softplusBackward.apply([v, x], attributes) : undefined,
      needs[1] ? curvature() : undefined,
    ];
  },
});

/** log(1 + exp(β x)) / β, computed in float32 under autocast. */
export const softplus: (x: Tensor, options?: SoftplusOptions) => Tensor = checked(
  "softplus",
  { x: tensor, options: optionals({ beta: number, threshold: number }) },
  (x: Tensor, { beta = 1, threshold = 20 }: SoftplusOptions = {}): Tensor =>
    softplusOp.apply([x], { beta, threshold }),
);
