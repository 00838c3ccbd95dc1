import type { DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  programsOf,
  runOnCpu,
  someGpu,
  testValues,
  withHardware,
  withoutMemory,
} from "../../test/harness.js";
import { type StridedCopyAttributes, stridedCopy } from "./strided-copy.js";

const inputLength = 1000;
const input = { values: Array.from({ length: inputLength }, (_, i) => i) };

const countOf = ({ dimensions }: StridedCopyAttributes): number =>
  dimensions.reduce((product, { size }) => product * size, 1);

const run = (attributes: StridedCopyAttributes): number[] =>
  Array.from(
    runOnCpu({ input, out: { values: countOf(attributes) } }, (target, bindings) =>
      target.launch(stridedCopy(bindings, attributes)),
    ).out,
  );

/** Every element looked up by its own coordinates. */
const expected = ({ dimensions, offset = 0, fill = 0 }: StridedCopyAttributes): number[] =>
  dimensions
    .reduce<(number | undefined)[]>(
      (starts, { size, stride, from = 0, to = size }) =>
        starts.flatMap((start) =>
          Array.from({ length: size }, (_, c) =>
            start === undefined || c < from || c >= to ? undefined : start + c * stride,
          ),
        ),
      [offset],
    )
    .map((at) => at ?? fill);

const dimension = fc.record({
  size: fc.integer({ min: 1, max: 4 }),
  stride: fc.integer({ min: -8, max: 8 }),
  from: fc.integer({ min: -1, max: 2 }),
  to: fc.integer({ min: 1, max: 5 }),
});

interface Case extends StridedCopyAttributes {
  readonly dtype?: DType;
  /** Of the result. Default: the same. */
  readonly out?: DType;
}

/** Rows of whole pairs of quads. */
const rowsOfPairs: StridedCopyAttributes = {
  dimensions: [
    { size: 3, stride: 24 },
    { size: 2, stride: 8 },
    { size: 16, stride: 1 },
  ],
  offset: 8,
};

const cases: readonly Case[] = [
  { dimensions: [{ size: 7, stride: 3 }], offset: 5 },
  { dimensions: [{ size: 9, stride: -1 }], offset: 8 },
  {
    dimensions: [
      { size: 3, stride: 20 },
      { size: 12, stride: 1 },
    ],
    offset: 4,
    dtype: "float16",
  },
  {
    dimensions: [
      { size: 5, stride: 12, from: 1, to: 4 },
      { size: 6, stride: 4, from: 2, to: 5 },
      { size: 4, stride: 1 },
    ],
    offset: -20,
    fill: -7,
    dtype: "bfloat16",
  },
  {
    dimensions: [
      { size: 3, stride: 5, from: 0, to: 2 },
      { size: 5, stride: 1, from: 1, to: 4 },
    ],
    offset: -1,
    fill: 9,
    dtype: "uint32",
  },
  // Rows of more quads than an invocation copies, in a row and an element at a time.
  {
    dimensions: [
      { size: 2, stride: 80 },
      { size: 72, stride: 1 },
    ],
    dtype: "float16",
  },
  {
    dimensions: [
      { size: 3, stride: 1, from: 1 },
      { size: 68, stride: 2, from: 3, to: 67 },
    ],
    dtype: "bfloat16",
  },
  { ...rowsOfPairs, dtype: "float16" },
  { ...rowsOfPairs, dtype: "float16", out: "bfloat16" },
  { ...rowsOfPairs, dtype: "bfloat16", out: "float32" },
  { ...rowsOfPairs, offset: 4, dtype: "float16" },
  { dimensions: [{ size: 40, stride: 1 }], offset: 16, dtype: "bfloat16" },
  {
    dimensions: [
      { size: 5, stride: 24, from: 1, to: 4 },
      { size: 40, stride: 1, from: 8, to: 32 },
    ],
    offset: -24,
    fill: -7,
    dtype: "float16",
  },
  { dimensions: [2, 3, 2, 3, 2, 3].map((size, d) => ({ size, stride: 1 + 7 * d })) },
  { dimensions: [{ size: 0, stride: 1 }] },
];

const tiers = await testTiers();

describe("stridedCopy", () => {
  it("finds every element, whatever the walk", () => {
    fc.assert(
      fc.property(fc.array(dimension, { maxLength: 8 }), fc.nat(8), (dimensions, extra) => {
        // Far enough inside that no walk leaves the input.
        const attributes = { dimensions, offset: 400 + extra, fill: -1 };
        expect(run(attributes)).toEqual(expected(attributes));
      }),
    );
  });

  it("moves integers that no float holds", () => {
    const { out } = runOnCpu(
      {
        input: { values: [2 ** 32 - 1, 2 ** 24 + 1], dtype: "uint32" },
        out: { values: 2, dtype: "uint32" },
      },
      (target, bindings) =>
        target.launch(stridedCopy(bindings, { dimensions: [{ size: 2, stride: -1 }], offset: 1 })),
    );
    expect([...out]).toEqual([2 ** 24 + 1, 2 ** 32 - 1]);
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    // With the programs of this adapter, and with those of GPUs.
    for (const isGpu of [false, true])
      for (const { dtype = "float32", out = dtype, ...attributes } of cases) {
        const values = testValues(200).map((v) => (dtype === "uint32" ? 2 ** 31 + v * 128 : v));
        const texts = await deviceMismatches(
          device,
          { input: { values, dtype }, out: { values: countOf(attributes), dtype: out } },
          (target, bindings) =>
            (isGpu ? withHardware(target, someGpu) : target).launch(
              stridedCopy(bindings, attributes),
            ),
          { out: { relative: 0, absolute: 0 } },
        );
        found.push(...texts.map((text) => `${isGpu} ${JSON.stringify(attributes)}: ${text}`));
      }
    expect(found).toEqual([]);
  });

  it("moves 16 bytes at a time on GPUs where its storage has 16 bits", () => {
    const pairs = (dtype: DType, attributes = rowsOfPairs, hardware = someGpu): number => {
      const operands = {
        input: withoutMemory(200, dtype),
        out: withoutMemory(countOf(attributes), dtype),
      };
      const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) =>
        target.launch(stridedCopy(operands, attributes)),
      );
      return (codes.stridedCopy?.split("array<vec4u>").length ?? 0) - 1;
    };
    expect([pairs("float16"), pairs("bfloat16"), pairs("float32")]).toEqual([2, 2, 0]);
    expect(pairs("float16", { ...rowsOfPairs, offset: 4 })).toBe(0);
    expect(pairs("float16", rowsOfPairs, { ...someGpu, class: "software" })).toBe(0);
  });
});
