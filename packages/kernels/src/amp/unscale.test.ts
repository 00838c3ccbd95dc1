import type { LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bfloat16, float16 } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import { mismatches, type Results, runOnCpu, runOnGpu, testValues } from "../../test/harness.js";
import { checkFinite, squaresLength, squaresPlanes } from "./check-finite.js";
import { rescale, unscale } from "./unscale.js";

const dtypes = ["float32", "float16", "bfloat16"] as const;
type Floating = (typeof dtypes)[number];

const rounded = (value: number, dtype: Floating): number =>
  dtype === "float32"
    ? Math.fround(value)
    : (dtype === "float16" ? float16 : bfloat16).round(value);

// More than every invocation has in one round, in float32.
const cases = dtypes.flatMap((dtype) =>
  (dtype === "float32" ? [1, 6, 1_100_003] : [7, 4_099]).map((length) => [dtype, length] as const),
);

const operandsOf = (dtype: Floating, length: number) => {
  const values = testValues(length, length);
  const word = { values: 1 } as const;
  return {
    checked: { values, dtype },
    unscaled: { values, dtype },
    rescaled: { values, dtype },
    from: { values: [4, 0.25] },
    to: { values: [3, 1 / 3] },
    foundInf: { values: [0], dtype: "uint32" },
    squares: { values: squaresLength },
    squaresToo: { values: squaresLength },
    ...{ word },
  } as const;
};
type Operands = ReturnType<typeof operandsOf>;

function launches<B>(
  target: LaunchTarget<B>,
  operands: { readonly [name in keyof Operands]: { readonly buffer: B } },
  bindings: Parameters<typeof checkFinite<B>>[0]["x"][],
): void {
  const [checked, unscaled, rescaled] = bindings as [
    (typeof bindings)[0],
    (typeof bindings)[0],
    (typeof bindings)[0],
  ];
  const foundInf = operands.foundInf.buffer;
  const state = operands.from.buffer;
  const sum = { state, squares: operands.squares.buffer };
  target.launch(checkFinite({ x: checked, foundInf }, sum));
  // Twice: partial sums are added to.
  target.launch(checkFinite({ x: checked, foundInf }, sum));
  const squares = operands.squaresToo.buffer;
  target.launch(unscale({ x: unscaled, state, foundInf, squares }));
  const to = operands.to.buffer;
  target.launch(rescale({ x: rescaled, from: state, to, foundInf }));
}

function expectRight(dtype: Floating, length: number, results: Results<Operands>): void {
  const values = testValues(length, length);
  const sum = values.reduce((total, value) => total + (value / 4) ** 2, 0);
  const total = (partials: ArrayLike<number>): number =>
    Array.from(partials)
      .slice(0, squaresPlanes.length)
      .reduce((a, b) => a + b, 0);
  const relative = { relative: 1e-5, absolute: 0 };
  const exact = { relative: 0, absolute: 0 };
  const wrong = [
    ...mismatches([total(results.squares)], [2 * sum], relative),
    ...mismatches([total(results.squaresToo)], [sum], relative),
    ...mismatches(results.checked, values, exact),
    ...mismatches(
      results.unscaled,
      values.map((value) => rounded(value / 4, dtype)),
      exact,
    ),
    ...mismatches(
      results.rescaled,
      values.map((value) => rounded(Math.fround(value / 4) * 3, dtype)),
      exact,
    ),
    ...mismatches(results.foundInf, [0], exact),
  ];
  expect(wrong).toEqual([]);
}

describe("check, unscale and rescale with sums of squares", () => {
  it.each(cases)("by the reference: %s, %i elements", (dtype, length) => {
    const results = runOnCpu(operandsOf(dtype, length), (target, b) =>
      launches(target, b, [b.checked, b.unscaled, b.rescaled]),
    );
    expectRight(dtype, length, results);
  });
});

describe.each(await testTiers())("check, unscale and rescale on the GPU, %s tier", (tier) => {
  it.each(cases)("%s, %i elements", async (dtype, length) => {
    const device = await requestTestDevice({ tier });
    const results = await runOnGpu(device, operandsOf(dtype, length), (target, b) =>
      launches(target, b, [b.checked, b.unscaled, b.rescaled]),
    );
    expectRight(dtype, length, results);
  });
});
