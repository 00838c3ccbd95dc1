import { expect, test } from "vitest";
import { cpuRuntime } from "../src/index.js";
import { type FloatDType, places } from "./forward-check.js";
import { names, type SpecialValue, torchValues, valuesOn } from "./special-values.js";

/**
 * Functions that keep NaN where torch drops it, or overflow in an intermediate result: a scaler then detects more overflows,
 * never fewer.
 */
const louder: ReadonlySet<string> = new Set([
  // torch's slope of |x| is 0 at NaN.
  ...["abs", "sign", "l1Loss", "smoothL1Loss of 0", "norm of 1", "norm of infinity"],
  // torch's clamp has the slope 0 at NaN, and so have its losses with margins.
  ...["clamp", "clamp from below", "clamp from above", "hingeEmbeddingLoss", "marginRankingLoss"],
  // The gradient of a constant is 0 times the gradient of the result.
  ...["floor", "ceil", "round", "pow by 0", "pow"],
  "elu",
  // Composed of several ops, between which infinities meet.
  ...["smoothL1Loss", "smoothL1Loss of 2", "huberLoss", "huberLoss of 2"],
  ...["binaryCrossEntropyWithLogits", "norm", "variance", "logsumexp", "klDiv"],
  ...["lerp near", "lerp far", "lerp by a tensor"],
  // Units that fill up a quad have weights of 0, whose product with an infinite input is NaN.
  ...["lstm", "gru"],
]);

/** Functions whose formula is finite where intermediate results of torch's overflow or are 0 · ∞. */
const steadier: ReadonlySet<string> = new Set([
  ...["atan2", "div", "prod", "layerNorm", "softMarginLoss", "klDiv"],
  ...["gelu", "gelu by tanh", "softplus of 2x", "gru"],
]);

const slack: Readonly<Record<FloatDType, number>> = {
  float32: 2 ** -16,
  float16: 2 ** -8,
  bfloat16: 2 ** -5,
};

/** Zeros of either sign are equal. */
const isClose = (actual: number, expected: number, dtype: FloatDType): boolean =>
  Object.is(actual, expected) ||
  Math.abs(actual - expected) <= slack[dtype] * (Math.abs(expected) + 2 ** -4);

const isBeyond = ({ at, gradient = 0 }: SpecialValue): boolean =>
  [...at, gradient].some((x) => !(Math.abs(x) < 1e38));

function isAccepted(found: SpecialValue, actual: number): boolean {
  const { value } = found;
  const name = found.name.replace(/\[.*/, "");
  if (isClose(actual, value, "float32")) return true;
  if (!Number.isFinite(actual) && louder.has(name) && (isBeyond(found) || name === "klDiv"))
    return true;
  return Number.isNaN(value) && steadier.has(name);
}

const describe = ({ name, what, at, gradient }: SpecialValue): string =>
  `${name}, ${what} at (${at})${gradient === undefined ? "" : ` of ${gradient}`}`;

test("values and gradients at zeros, ties, kinks, infinities and NaN are torch's, but for the NaN that torch loses", async () => {
  const actual = await valuesOn(cpuRuntime(), "float32");
  const found = torchValues().flatMap((expected, i) => {
    const is = actual[i] as number;
    return isAccepted(expected, is)
      ? []
      : [`${describe(expected)} is ${is}, not ${expected.value}`];
  });
  expect(actual.length).toBeGreaterThan(45_000);
  expect(found).toEqual([]);
});

/** Functions of which only the first operand is always read, or none: x to the power 0 is 1. */
const selective: ReadonlySet<string> = new Set(["prelu", "hingeEmbeddingLoss"]);
const masks: ReadonlySet<string> = new Set(["where", "maskedFill", "pow", "pow by 0"]);
const decisions: ReadonlySet<string> = new Set(
  ["eq", "ne", "lt", "le", "gt", "ge"].concat(["isnan", "isinf", "isfinite"]),
);

test("no function makes a number of NaN, on its way forth or back", async () => {
  const actual = await valuesOn(cpuRuntime(), "float32");
  const found = torchValues().flatMap((value, i) => {
    const { name, what, at, gradient } = value;
    if (masks.has(name) || decisions.has(name) || name.includes("[")) return [];
    const isLost =
      (selective.has(name) ? at.slice(0, 1) : at).some(Number.isNaN) &&
      (what === "result" || Number.isNaN(gradient));
    return isLost && !Number.isNaN(actual[i]) ? [`${describe(value)} is ${actual[i]}`] : [];
  });
  expect(found).toEqual([]);
});

/** Kernels test every expression at such values on the GPU; these are activations, and functions of several launches. */
const onGpu = [
  ...["relu", "silu", "gelu", "gelu by tanh", "elu", "leakyRelu", "prelu", "softplus", "sigmoid"],
  ...["clamp", "hardtanh", "abs", "maximum", "minimum", "l1Loss", "smoothL1Loss", "huberLoss"],
  ...[
    "binaryCrossEntropyWithLogits",
    "marginRankingLoss",
    "softmax",
    "crossEntropy",
    "amax",
    "max",
  ],
  ...["maxPool2d", "logsumexp"],
];

test.each(places.filter(([place, dtype]) => place !== "CPU" && dtype !== "float32"))(
  "they are the same on every tier: %s, %s",
  async (_, dtype, open) => {
    const expected = await valuesOn(cpuRuntime(), dtype, onGpu);
    const actual = await valuesOn(await open(), dtype, onGpu);
    const found = torchValues(onGpu).flatMap((value, i) => {
      const [is, wanted] = [actual[i], expected[i]] as [number, number];
      // A slope that underflows to 0 turns an infinite gradient into NaN; any other slope keeps it infinite.
      const isLost =
        !Number.isFinite(is) &&
        !Number.isFinite(wanted) &&
        value.gradient !== undefined &&
        !Number.isFinite(value.gradient);
      return isClose(is, wanted, dtype) || isLost
        ? []
        : [`${describe(value)} is ${is}, not ${wanted}`];
    });
    expect(onGpu.filter((name) => !names.includes(name))).toEqual([]);
    expect(found).toEqual([]);
  },
);
