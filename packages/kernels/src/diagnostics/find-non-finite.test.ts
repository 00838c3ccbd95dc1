import type { Binding, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import { runOnCpu, runOnGpu, testValues } from "../../test/harness.js";
import { decodeFound, findNonFinite, nothingFound } from "./find-non-finite.js";

interface Case {
  readonly length: number;
  readonly dtype: "float32" | "float16" | "bfloat16";
  readonly bad: readonly (readonly [element: number, value: number])[];
}

const largest = { float32: 3.4028234663852886e38, float16: 65504, bfloat16: 3.3895313892515355e38 };
const dtypes = ["float32", "float16", "bfloat16"] as const;

const cases: readonly Case[] = dtypes.flatMap((dtype) => [
  { length: 1, dtype, bad: [] },
  { length: 1, dtype, bad: [[0, Number.NaN]] },
  { length: 7, dtype, bad: [[6, -Infinity]] },
  {
    length: 5003,
    dtype,
    bad: [
      [0, largest[dtype]],
      [1, -largest[dtype]],
    ],
  },
  {
    length: 5003,
    dtype,
    bad: [
      [4999, Infinity],
      [5002, Number.NaN],
    ],
  },
  {
    length: 70_001,
    dtype,
    bad: [
      [70_000, Infinity],
      [40_003, Number.NaN],
      [40_002, Number.NaN],
    ],
  },
]);

const operandsOf = ({ length, dtype, bad }: Case) => {
  const values = testValues(length, 1);
  for (const [element, value] of bad) values[element] = value;
  return {
    x: { values, dtype },
    found: { values: [nothingFound, nothingFound], dtype: "uint32" as const },
  };
};

const find = <B>(
  target: LaunchTarget<B>,
  { x, found }: { readonly x: Binding<B>; readonly found: Binding<B> },
): void => target.launch(findNonFinite({ x, found }, 1));

const expected = ({ bad }: Case): readonly [number, unknown] => {
  const [first] = bad.filter(([, value]) => !Number.isFinite(value)).sort(([a], [b]) => a - b);
  if (!first) return [nothingFound, undefined];
  const [element, value] = first;
  return [nothingFound, { element, kind: Number.isNaN(value) ? "nan" : "infinity" }];
};

const seen = (found: ArrayLike<number>): readonly [number, unknown] => [
  found[0] as number,
  decodeFound(found[1] as number),
];

test("the first element that is not finite is found on the CPU", () => {
  expect(cases.map((c) => seen(runOnCpu(operandsOf(c), find).found))).toEqual(cases.map(expected));
});

describe.each(await testTiers())("on the GPU, %s tier", (tier) => {
  test("the first element that is not finite is found", async () => {
    const device = await requestTestDevice({ tier });
    const found: unknown[] = [];
    for (const c of cases) found.push(seen((await runOnGpu(device, operandsOf(c), find)).found));
    expect(found).toEqual(cases.map(expected));
  });
});
