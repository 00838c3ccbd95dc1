import type { DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, runOnCpu, testValues } from "../../test/harness.js";
import { copyRowsApart } from "./copy-rows-apart.js";

const sizes: readonly { readonly rows: number; readonly length: number; readonly dtype: DType }[] =
  [
    { rows: 1, length: 4, dtype: "float32" },
    { rows: 4, length: 36, dtype: "float16" },
    { rows: 9, length: 32, dtype: "bfloat16" },
    { rows: 7, length: 72, dtype: "float8e5m2" },
    // More workgroups than one dimension of a dispatch holds.
    { rows: 270_001, length: 4, dtype: "float32" },
  ];
const gap = 8;
const tiers = await testTiers();

/** The rows, and the earlier contents behind each of them. */
const operandsOf = ({ rows, length, dtype }: (typeof sizes)[number]) => ({
  input: { values: testValues(rows * length, 1), dtype },
  out: { values: testValues(rows * (length + gap), 2), dtype },
});

describe("copyRowsApart", () => {
  it("moves rows apart, and leaves what is between them", () => {
    const { input, out } = operandsOf({ rows: 3, length: 8, dtype: "float32" });
    const found = runOnCpu({ input, out }, (target, bindings) =>
      target.launch(copyRowsApart(bindings, { rows: 3, length: 8, stride: 16 })),
    );
    const expected = [0, 1, 2].flatMap((row) => [
      ...input.values.subarray(row * 8, row * 8 + 8),
      ...out.values.subarray(row * 16 + 8, row * 16 + 16),
    ]);
    expect([...found.out]).toEqual(expected);
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const size of sizes) {
      const { rows, length } = size;
      const texts = await deviceMismatches(
        device,
        operandsOf(size),
        (target, bindings) =>
          target.launch(copyRowsApart(bindings, { rows, length, stride: length + gap })),
        { out: { relative: 0, absolute: 0 } },
      );
      found.push(...texts.map((text) => `${rows} rows of ${length}: ${text}`));
    }
    expect(found).toEqual([]);
  });
});
