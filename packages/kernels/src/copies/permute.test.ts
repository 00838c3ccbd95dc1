import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deviceMismatches, runOnCpu, testValues } from "../../test/harness.js";
import { type PermuteAttributes, permute } from "./permute.js";

const runPermute = (attributes: PermuteAttributes): number[] => {
  const size = attributes.shape.reduce((a, b) => a * b, 1);
  const operands = { input: { values: Array.from({ length: size }, (_, i) => i) } };
  const { out } = runOnCpu({ ...operands, out: { values: size } }, (target, bindings) =>
    target.launch(permute(bindings, attributes)),
  );
  return Array.from(out);
};

/** Element [i0, i1, …] of the result, looked up in the input by its own coordinates. */
function expected({ shape, order }: PermuteAttributes): number[] {
  const sizes = order.map((d) => shape[d] as number);
  return Array.from({ length: sizes.reduce((a, b) => a * b, 1) }, (_, at) => {
    const place = Array<number>(shape.length).fill(0);
    let rest = at;
    for (let d = sizes.length - 1; d >= 0; d--) {
      place[order[d] as number] = rest % (sizes[d] as number);
      rest = Math.floor(rest / (sizes[d] as number));
    }
    return shape.reduce((flat, size, d) => flat * size + (place[d] as number), 0);
  });
}

const attributes = fc.integer({ min: 0, max: 5 }).chain((rank) =>
  fc.record({
    shape: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: rank, maxLength: rank }),
    order: fc.shuffledSubarray([0, 1, 2, 3, 4].slice(0, rank), {
      minLength: rank,
      maxLength: rank,
    }),
  }),
);

interface Case extends PermuteAttributes {
  readonly storage?: HalfDType;
}

const cases: readonly Case[] = [
  { shape: [7, 9], order: [1, 0] },
  { shape: [3, 5, 8], order: [1, 0, 2] },
  { shape: [2, 3, 4, 5], order: [0, 3, 1, 2] },
  { shape: [2, 3, 2, 3, 2], order: [4, 3, 2, 1, 0] },
  { shape: [2, 2, 1, 3, 2, 2, 2, 2], order: [7, 6, 5, 4, 3, 2, 1, 0] },
  { shape: [4, 6], order: [0, 1] },
  { shape: [0, 6], order: [1, 0] },
  { shape: [6, 7], order: [1, 0], storage: "float16" },
  { shape: [3, 5, 4], order: [1, 0, 2], storage: "bfloat16" },
];

const tiers = await testTiers();

describe("permute", () => {
  it("moves every element to its place", () => {
    fc.assert(
      fc.property(attributes, (a) => {
        expect(runPermute(a)).toEqual(expected(a));
      }),
    );
  });

  it("refuses orders that are no permutation", () => {
    expect(() => runPermute({ shape: [2, 3], order: [0, 0] })).toThrow("each of the 2 dimensions");
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const { storage: dtype = "float32", ...attributes } of cases) {
      const size = attributes.shape.reduce((a, b) => a * b, 1);
      const texts = await deviceMismatches(
        device,
        { input: { values: testValues(size), dtype }, out: { values: size, dtype } },
        (target, bindings) => target.launch(permute(bindings, attributes)),
        { out: { relative: 0, absolute: 0 } },
      );
      found.push(...texts.map((text) => `[${attributes.order}] of [${attributes.shape}]: ${text}`));
    }
    expect(found).toEqual([]);
  });
});
