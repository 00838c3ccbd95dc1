import type { Expression } from "../elementwise.js";
import { formula } from "../formula/formula.js";
import { constant, predicate, select, type Term } from "../formula/term.js";
import { erfc } from "./error-function.js";
import { accurateExpm1, logistic } from "./exponential.js";
import { keepingNan, nan } from "./guards.js";

/** Whether a number is negative or −0: from the bits of −0 to those of −∞. False for NaN of either sign. */
const hasMinus = predicate({
  wgsl: (x) => `(bitcast<vec4u>(${x}) - vec4u(0x80000000u)) <= vec4u(0x7f800000u)`,
  holds: (x) => x < 0 || Object.is(x, -0),
});

/** Whether a number is below 0 or one of the zeros; NaN is neither. */
const isNotPositive = predicate({
  wgsl: (x) =>
    `((bitcast<vec4u>(${x}) - vec4u(0x80000000u)) <= vec4u(0x7f800000u)) | (bitcast<vec4u>(${x}) == vec4u(0u))`,
  holds: (x) => x <= 0,
});

/** Whether a number is above 0: from the bits of the least one to those of ∞. */
const isPositive = predicate({
  wgsl: (x) => `(bitcast<vec4u>(${x}) - vec4u(1u)) < vec4u(0x7f800000u)`,
  holds: (x) => x > 0,
});

/** max(x, 0). NaN stays NaN, which WGSL's `max` would swallow. */
export const relu: Expression = formula("relu", (x) => select(hasMinus(x), 0, x));

/** The gradient of relu from (dy, y): 0 where y ≤ 0, else dy, at NaN too, as torch's threshold_backward. */
export const reluBackward: Expression = formula("reluBackward", (dy, y) =>
  select(isNotPositive(y), 0, dy),
);

const sigmoidOf = (x: Term): Term => keepingNan(x, logistic(x));

/** 1 / (1 + exp(-x)) */
export const sigmoid: Expression = formula("sigmoid", sigmoidOf);

/** x · sigmoid(x) */
export const silu: Expression = formula("silu", (x) => x.mul(sigmoidOf(x)));

/** x · Φ(x), with Φ the normal distribution: torch's default gelu. */
export const gelu: Expression = formula("gelu", (x) =>
  constant(0.5)
    .mul(x)
    .mul(erfc(x.mul(-Math.SQRT1_2))),
);

// In WGSL this is the float32 below the nearest one, as before: another constant would change the bits of trainings.
const tanhFactor = constant(2 * Math.sqrt(2 / Math.PI), 1.5957691);

/** The argument of the sigmoid in gelu's tanh approximation: (1 + tanh u) / 2 is sigmoid(2u), without cancellation. */
const twiceU = (x: Term): Term => tanhFactor.mul(x.add(constant(0.044715).mul(x).mul(x).mul(x)));

/** gelu by its tanh approximation, torch's `approximate="tanh"`. */
export const geluTanh: Expression = formula("geluTanh", (x) => x.mul(sigmoidOf(twiceU(x))));

/** The gradient of silu, of (gradient, x). NaN at the infinities, as in torch: a scaler must see that an activation was infinite. */
export const siluBackward: Expression = formula("siluBackward", (g, x) => {
  const s = logistic(x);
  const slope = s.mul(constant(1).add(x.mul(constant(1).sub(s))));
  return select(x.isFinite(), g.mul(slope), nan(x));
});

/** The gradient of gelu, of (gradient, x). NaN at the infinities, as in torch. */
export const geluBackward: Expression = formula("geluBackward", (g, x) => {
  // Beyond 20 the exponential is 0, and the square may overflow.
  const t = select(x.abs().gt(20), 20, x);
  const density = constant(1 / Math.sqrt(2 * Math.PI))
    .mul(t)
    .mul(constant(-0.5).mul(t).mul(t).exp());
  const slope = constant(0.5)
    .mul(erfc(x.mul(-Math.SQRT1_2)))
    .add(density);
  return select(x.isFinite(), g.mul(slope), nan(x));
});

/** The gradient of gelu by its tanh approximation, of (gradient, x). NaN at the infinities, as in torch. */
export const geluTanhBackward: Expression = formula("geluTanhBackward", (g, x) => {
  // Beyond 20 the slope is 0 or 1 to the last bit, and its terms overflow.
  const t = x.max(-20).min(20);
  const s = logistic(twiceU(t));
  const rise = constant(1).add(
    constant(3 * 0.044715)
      .mul(t)
      .mul(t),
  );
  const slope = s.add(t.mul(s).mul(constant(1).sub(s)).mul(tanhFactor).mul(rise));
  return select(x.isFinite(), g.mul(slope), nan(x));
});

/** x above 0, else α (exp(x) - 1). Scalar: α. */
export const elu: Expression = formula(
  "elu",
  (x, alpha) => select(x.gt(0).or(x.isNan()), x, alpha.mul(accurateExpm1(x.min(0)))),
  { scalars: 1 },
);

/** The gradient of elu, of (gradient, x). Scalar: α. */
export const eluBackward: Expression = formula(
  "eluBackward",
  (g, x, alpha) => g.mul(select(x.gt(0), 1, alpha.mul(keepingNan(x, x.exp())))),
  { scalars: 1 },
);

/** x above 0, else c · x. */
export const leakyRelu: Expression = formula(
  "leakyRelu",
  (x, c) => select(hasMinus(x), x.mul(c), x),
  { scalars: 1 },
);

/** The gradient of leakyRelu, of (gradient, x): the gradient above 0, else c times it, at NaN too. */
export const leakyReluBackward: Expression = formula(
  "leakyReluBackward",
  (g, x, c) => select(isPositive(x), g, g.mul(c)),
  { scalars: 1 },
);

/** From (x, weight): x above 0, else weight · x. */
export const prelu: Expression = formula("prelu", (x, w) => select(isPositive(x), x, w.mul(x)));

/** From (gradient, x, weight): the gradient above 0, else weight times it, at NaN too. */
export const preluBackward: Expression = formula("preluBackward", (g, x, w) =>
  select(isPositive(x), g, w.mul(g)),
);

/** From (gradient, x): 0 above 0, else gradient · x, at NaN too. */
export const preluWeightGradient: Expression = formula("preluWeightGradient", (g, x) =>
  select(isPositive(x), 0, g.mul(x)),
);
