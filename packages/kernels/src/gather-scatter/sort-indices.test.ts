import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, type Launches, runOnCpu } from "../../test/harness.js";
import { stridedCopy } from "../copies/strided-copy.js";
import { sortIndices } from "./sort-indices.js";

const cases = [
  { count: 1, size: 1 },
  { count: 2000, size: 17 },
  { count: 2049, size: 15 },
  { count: 2100, size: 1 },
  { count: 5001, size: 70_000 },
  { count: 20_003, size: 300 },
];

const keysOf = ({ count, size }: (typeof cases)[number]): number[] =>
  Array.from({ length: count }, (_, k) =>
    // Many equal ones, and some out of range.
    k % 31 === 7 ? size + (k % 3) : Math.floor(Math.abs(Math.sin(k)) * size) % size,
  );

const operandsOf = (check: (typeof cases)[number]) =>
  ({
    keys: { values: keysOf(check), dtype: "uint32" },
    order: { values: check.count, dtype: "uint32" },
  }) as const;

const launches =
  ({ count, size }: (typeof cases)[number]): Launches<ReturnType<typeof operandsOf>> =>
  (target, { keys, order }) => {
    const input = sortIndices(target, keys, size);
    target.launch(stridedCopy({ input, out: order }, { dimensions: [{ size: count, stride: 1 }] }));
  };

const tiers = await testTiers();

describe("sortIndices", () => {
  it("sorts places by key, and keeps equal ones in order", () => {
    for (const check of cases) {
      const keys = keysOf(check).map((key) => Math.min(key, check.size));
      const expected = keys
        .map((_, k) => k)
        .sort((a, b) => (keys[a] as number) - (keys[b] as number) || a - b);
      expect([...runOnCpu(operandsOf(check), launches(check)).order]).toEqual(expected);
    }
  });

  it.each(tiers)("gives the same order on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const check of cases)
      found.push(
        ...(await deviceMismatches(device, operandsOf(check), launches(check), {
          order: { relative: 0, absolute: 0 },
        })),
      );
    expect(found).toEqual([]);
  });
});
