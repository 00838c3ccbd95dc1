import type { CastPolicy } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import { number, oneOf, optional, optionals, options, tensor } from "../arguments/kinds.js";
import { type CallableOp, callable, type Op, type UnaryOp } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { isNan, keepWhere, le, logicalNot, lt, maskedFill } from "./comparison.js";
import { ofOne, pointwise, unary } from "./pointwise.js";

/** 1 / (1 + exp(−x)). */
export const sigmoid: UnaryOp = unary(kernels.sigmoid, "none", (g, _, y) =>
  g.mul(y.mul(y.neg().add(1))),
);

/**
 * An activation with a kernel for its gradient, so that intermediate results are not rounded. Without `curvature` the slope is
 * constant wherever it is defined.
 */
interface Curved<A> {
  readonly expression: kernels.Expression;
  /** Of (gradient, x). */
  readonly slope: kernels.Expression;
  readonly name?: string;
  readonly castPolicy?: CastPolicy;
  readonly integers?: true;
  /** The numbers that have to be whole where the operands are integers. */
  wholeNumbers?(attributes: A): readonly number[];
  constants?(attributes: A): readonly number[];
  /** The second derivative, written in ops. */
  curvature?(x: Tensor, attributes: A): Tensor;
}

function activation<A>({ castPolicy = "none", slope, curvature, ...definition }: Curved<A>): Op<A> {
  const { constants = () => [] } = definition;
  const backward: Op<A> = pointwise<A>({
    expression: slope,
    castPolicy: "none",
    constants,
    backward({ inputs, gradients, needs, attributes }) {
      const [g, x] = inputs as [Tensor, Tensor];
      const v = gradients[0] as Tensor;
      return [
        needs[0] ? backward.apply([v, x], attributes) : undefined,
        needs[1] && curvature ? v.mul(g).mul(curvature(x, attributes)) : undefined,
      ];
    },
  });
  return pointwise<A>({
    ...definition,
    castPolicy,
    constants,
    backward: ({ inputs, gradients, attributes }) => [
      backward.apply([gradients[0] as Tensor, inputs[0] as Tensor], attributes),
    ],
  });
}

/** max(x, 0); NaN stays NaN. */
export const relu: UnaryOp = ofOne(
  pointwise<null>({
    expression: kernels.relu,
    castPolicy: "none",
    backward: ({ outputs, gradients }) => [
      reluBackward.apply([gradients[0] as Tensor, outputs[0] as Tensor], null),
    ],
  }),
);

/** gradient where y > 0, else 0. */
const reluBackward: Op<null> = pointwise<null>({
  expression: kernels.reluBackward,
  castPolicy: "none",
  backward: ({ inputs, gradients }) => [
    reluBackward.apply([gradients[0] as Tensor, inputs[1] as Tensor], null),
    undefined,
  ],
});

/** x · sigmoid(x), also called swish. */
export const silu: UnaryOp = ofOne(
  activation<null>({
    expression: kernels.silu,
    slope: kernels.siluBackward,
    curvature(x) {
      const s = x.sigmoid();
      return s.mul(s.neg().add(1)).mul(x.mul(s.mul(-2).add(1)).add(2));
    },
  }),
);

const geluErf: Op<null> = activation<null>({
  expression: kernels.gelu,
  slope: kernels.geluBackward,
  curvature: (x) =>
    x
      .square()
      .mul(-0.5)
      .exp()
      .mul(x.square().neg().add(2))
      .mul(1 / Math.sqrt(2 * Math.PI)),
});

const geluTanh: Op<null> = activation<null>({
  expression: kernels.geluTanh,
  name: "gelu",
  slope: kernels.geluTanhBackward,
  curvature(x) {
    // x σ(u) with u = k (x + c x³): 2 σ' u' + x (σ'' u'² + σ' u'').
    const k = 2 * Math.sqrt(2 / Math.PI);
    const c = 0.044715;
    const s = x.add(x.square().mul(x).mul(c)).mul(k).sigmoid();
    const first = s.mul(s.neg().add(1));
    const u1 = x
      .square()
      .mul(3 * c)
      .add(1)
      .mul(k);
    const u2 = x.mul(6 * c * k);
    const bend = s.mul(-2).add(1).mul(u1.square()).add(u2);
    return first.mul(u1.mul(2).add(x.mul(bend)));
  },
});

/** Options of {@link gelu}. */
export interface GeluOptions {
  /** Default "none": the exact one, by the error function. */
  readonly approximate?: "none" | "tanh";
}

/** x · Φ(x), with Φ the normal distribution. */
export const gelu: (x: Tensor, options?: GeluOptions) => Tensor = checked(
  "gelu",
  { x: tensor, options: optionals({ approximate: oneOf("none", "tanh") }) },
  (x: Tensor, { approximate = "none" }: GeluOptions = {}): Tensor =>
    (approximate === "tanh" ? geluTanh : geluErf).apply([x], null),
);

const eluOp: Op<number> = activation<number>({
  expression: kernels.elu,
  slope: kernels.eluBackward,
  constants: (alpha) => [alpha],
  // 0 at 0, as in torch.
  curvature: (x, alpha) => keepWhere(x.exp().mul(alpha), lt(x, 0)),
});

/** x above 0, else α (exp(x) − 1); α is 1 by default. */
export const elu: (x: Tensor, alpha?: number) => Tensor = checked(
  "elu",
  { x: tensor, alpha: optional(number) },
  (x: Tensor, alpha = 1): Tensor => eluOp.apply([x], alpha),
);

const leakyReluOp: Op<number> = activation<number>({
  expression: kernels.leakyRelu,
  slope: kernels.leakyReluBackward,
  constants: (slope) => [slope],
});

/** x above 0, else slope · x; the slope is 0.01 by default. */
export const leakyRelu: (x: Tensor, negativeSlope?: number) => Tensor = checked(
  "leakyRelu",
  { x: tensor, negativeSlope: optional(number) },
  (x: Tensor, negativeSlope = 0.01): Tensor => leakyReluOp.apply([x], negativeSlope),
);

/** Ends of a range, both of which belong to it. */
export interface RangeOptions {
  /** The smallest number. */
  readonly min?: number;
  /** The largest number. */
  readonly max?: number;
}

const rangeMembers = { min: optional(number), max: optional(number) };

interface Range {
  readonly low: number;
  readonly high: number;
}

const rangeConstants = ({ low, high }: Range): readonly number[] => [low, high];

const clampOp: Op<Range> = activation<Range>({
  expression: kernels.clamp,
  slope: kernels.clampBackward,
  integers: true,
  // Missing bounds are infinite.
  wholeNumbers: (range) =>
    rangeConstants(range).filter((bound) => Math.abs(bound) !== Number.POSITIVE_INFINITY),
  constants: rangeConstants,
});

const hardtanhOp: Op<Range> = activation<Range>({
  expression: kernels.clamp,
  name: "hardtanh",
  slope: kernels.hardtanhBackward,
  constants: rangeConstants,
});

/** NaN everywhere, which bounds that are NaN give. Numbers get no gradient, NaN of x gets all of it. */
const undefinedLike = (x: Tensor): Tensor => maskedFill(x, logicalNot(isNan(x)), Number.NaN);

/**
 * x clamped to [min, max], either of which may be missing; all of it is max where min is above it, and NaN where one of them is NaN. NaN
 * stays NaN. The gradient at NaN is NaN, where torch's is 0: the scaler must see that an activation overflowed.
 */
export const clamp: (x: Tensor, range: RangeOptions) => Tensor = checked(
  "clamp",
  { x: tensor, range: options(rangeMembers) },
  (
    x: Tensor,
    { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: RangeOptions,
  ): Tensor =>
    isFloating(x.dtype) && [min, max].some(Number.isNaN)
      ? undefinedLike(x)
      : clampOp.apply([x], { low: min, high: max }),
);

/** x within [min, max], by default [−1, 1]; unlike that of clamp, its slope at the ends is 0. */
export const hardtanh: (x: Tensor, range?: RangeOptions) => Tensor = checked(
  "hardtanh",
  { x: tensor, range: optionals(rangeMembers) },
  (x: Tensor, { min = -1, max = 1 }: RangeOptions = {}): Tensor => {
    if (min > max) throw new RangeError(`hardtanh: min ${min} is above max ${max}`);
    return [min, max].some(Number.isNaN)
      ? undefinedLike(x)
      : hardtanhOp.apply([x], { low: min, high: max });
  },
);

const preluOp: Op<null> = pointwise<null>({
  expression: kernels.prelu,
  castPolicy: "lowerPrecision",
  backward({ inputs, gradients, needs }) {
    const [x, weight] = inputs as [Tensor, Tensor];
    const g = gradients[0] as Tensor;
    return [
      needs[0] ? preluBackward.apply([g, x, weight], null) : undefined,
      needs[1] ? preluWeightGradient.apply([g, x], null) : undefined,
    ];
  },
});

/** x above 0, else weight · x; the weight broadcasts to x, as one number or one a channel. */
export const prelu: CallableOp<(x: Tensor, weight: Tensor) => Tensor, null> = callable(
  preluOp,
  { x: tensor, weight: tensor },
  (x: Tensor, weight: Tensor) => preluOp.apply([x, weight], null),
);

const preluBackward: Op<null> = pointwise<null>({
  expression: kernels.preluBackward,
  castPolicy: "none",
  backward({ inputs, gradients, needs }) {
    const [g, x, weight] = inputs as [Tensor, Tensor, Tensor];
    const v = gradients[0] as Tensor;
    return [
      needs[0] ? preluBackward.apply([v, x, weight], null) : undefined,
      undefined,
      needs[2] ? keepWhere(v.mul(g), le(x, 0)) : undefined,
    ];
  },
});

const preluWeightGradient: Op<null> = pointwise<null>({
  expression: kernels.preluWeightGradient,
  castPolicy: "none",
  backward({ inputs, gradients, needs }) {
    const [g, x] = inputs as [Tensor, Tensor];
    const v = gradients[0] as Tensor;
    return [
      needs[0] ? preluWeightGradient.apply([v, x], null) : undefined,
      needs[1] ? keepWhere(v.mul(g), le(x, 0)) : undefined,
    ];
  },
});
