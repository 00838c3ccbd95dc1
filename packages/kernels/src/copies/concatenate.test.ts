import type { Binding, DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
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
import { type ConcatenateAttributes, concatenate } from "./concatenate.js";

interface Case extends ConcatenateAttributes {
  readonly dtype: DType;
}

const cases: readonly Case[] = [
  { outer: 1, sizes: [3, 5], inner: 1, dtype: "float32" },
  { outer: 3, sizes: [1, 2, 4], inner: 3, dtype: "float16" },
  { outer: 2, sizes: [3, 1], inner: 8, dtype: "bfloat16" },
  { outer: 5, sizes: [2, 0, 1], inner: 7, dtype: "uint32" },
  { outer: 2, sizes: [1, 2, 1, 1, 2, 1, 3], inner: 1, dtype: "float32" },
  { outer: 4, sizes: [2], inner: 4, dtype: "float32" },
  { outer: 3, sizes: [2, 1, 3], inner: 24, dtype: "float16" },
  { outer: 2, sizes: [3, 1], inner: 12, dtype: "float16" },
];

const names = ["a", "b", "c", "d", "e", "f", "g"] as const;
type Operands = Readonly<
  Record<(typeof names)[number] | "out", { values: Float32Array | number; dtype: DType }>
>;

function operandsOf({ outer, sizes, inner, dtype }: Case): Operands {
  const isInteger = dtype === "uint32";
  const inputs = names.map((name, p) => {
    const values = testValues(outer * (sizes[p] ?? 0) * inner, p + 1);
    return [name, { values: values.map((v) => (isInteger ? 2 ** 31 + v * 128 : v)), dtype }];
  });
  const total = sizes.reduce((a, b) => a + b, 0);
  return { ...Object.fromEntries(inputs), out: { values: outer * total * inner, dtype } };
}

const tiers = await testTiers();

describe("concatenate", () => {
  it("puts the rows of its inputs side by side", () => {
    for (const check of cases) {
      const operands = operandsOf(check);
      const { out } = runOnCpu(operands, (target, { a, b, c, d, e, f, g, out }) =>
        target.launch(
          concatenate({ inputs: [a, b, c, d, e, f, g].slice(0, check.sizes.length), out }, check),
        ),
      );
      const inputs = Object.values(operands).map(({ values }) => values);
      const expected = Array.from({ length: check.outer }, (_, o) =>
        check.sizes.flatMap((size, p) => [
          ...(inputs[p] as Float32Array).slice(
            o * size * check.inner,
            (o + 1) * size * check.inner,
          ),
        ]),
      ).flat();
      expect([...out]).toEqual(expected);
    }
  });

  it("refuses what no launch can bind", () => {
    const run = (sizes: readonly number[]) =>
      runOnCpu({ a: { values: [1] }, out: { values: sizes.length } }, (target, { a, out }) =>
        target.launch(
          concatenate({ inputs: sizes.map(() => a), out }, { outer: 1, sizes, inner: 1 }),
        ),
      );
    expect(() => run(Array(8).fill(1))).toThrow("1 to 7 inputs");
    expect(() => run([2])).toThrow("has 1 elements");
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    // With the programs of this adapter, and with those of GPUs.
    for (const isGpu of [false, true])
      for (const check of cases) {
        const texts = await deviceMismatches(
          device,
          operandsOf(check),
          (target, { a, b, c, d, e, f, g, out }) =>
            (isGpu ? withHardware(target, someGpu) : target).launch(
              concatenate(
                { inputs: [a, b, c, d, e, f, g].slice(0, check.sizes.length), out },
                check,
              ),
            ),
          { out: { relative: 0, absolute: 0 } },
        );
        found.push(...texts.map((text) => `${isGpu} [${check.sizes}]: ${text}`));
      }
    expect(found).toEqual([]);
  });

  it("moves 16 bytes at a time on GPUs where its storage has 16 bits", () => {
    const pairs = (inner: number, dtypes: readonly DType[], hardware = someGpu): number => {
      const [a, b, out] = dtypes.map((dtype, i) => withoutMemory((i + 1) * inner, dtype)) as [
        Binding<object>,
        Binding<object>,
        Binding<object>,
      ];
      const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) =>
        target.launch(concatenate({ inputs: [a, b], out }, { outer: 1, sizes: [1, 2], inner })),
      );
      return (codes.concatenate?.split("array<vec4u>").length ?? 0) - 1;
    };
    expect(pairs(8, ["float16", "bfloat16", "float16"])).toBe(3);
    expect(pairs(12, ["float16", "float16", "float16"])).toBe(0);
    expect(pairs(8, ["float16", "float16", "float32"])).toBe(0);
    expect(pairs(8, ["float16", "float16", "float16"], { ...someGpu, class: "software" })).toBe(0);
  });
});
