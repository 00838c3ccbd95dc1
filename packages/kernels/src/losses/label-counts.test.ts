import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, type Launches, runOnCpu } from "../../test/harness.js";
import { labelCounts } from "./label-counts.js";

const none = 2 ** 32 - 1;

const operandsOf = (labels: readonly number[]) =>
  ({
    labels: { values: labels, dtype: "uint32" },
    counts: { values: labels.length },
  }) as const;

const launchesOf =
  (rows: number, classes: number): Launches<ReturnType<typeof operandsOf>> =>
  (target, operands) =>
    target.launch(labelCounts(operands, { rows, classes }));

const tiers = await testTiers();

describe("labelCounts", () => {
  it("counts each row's labels up to the first that is no class", () => {
    const labels = [2, 0, none, 1, 1, 1, 1, 1, none, 0, 1, 2, 4, 0, 0, 0, 3, 2, 1, 0];
    const { counts } = runOnCpu(operandsOf(labels), launchesOf(5, 4));
    expect([...counts]).toEqual([1, 0, 1, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
  });

  it.each(tiers)("on the GPU, %s tier, equals the reference", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const [rows, classes] of [
      [9, 5],
      [1, 1],
      [0, 3],
      [70, 12],
    ] as const) {
      const labels = Array.from({ length: rows * classes }, (_, i) => {
        const label = (i * 7 + (i >> 3)) % (classes + 2);
        return label === classes + 1 ? none : label;
      });
      found.push(
        ...(await deviceMismatches(device, operandsOf(labels), launchesOf(rows, classes), {
          counts: { relative: 0, absolute: 0 },
        })),
      );
    }
    expect(found).toEqual([]);
  });
});
