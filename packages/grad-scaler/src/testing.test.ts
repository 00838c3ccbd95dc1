import { describe, expect, test } from "vitest";
import { type AmpPrimitives, float32Primitives, type ScaleUpdate } from "./index.js";
import { type AmpPrimitivesHarness, ampPrimitivesContract } from "./testing.js";

const harness = (primitives: AmpPrimitives<Float32Array>): AmpPrimitivesHarness<Float32Array> => ({
  primitives,
  upload: (values) => values.slice(),
  download: async (buffer) => buffer.slice(),
});

describe("float32Primitives", () => {
  for (const { name, run } of ampPrimitivesContract("float32", () => harness(float32Primitives))) {
    test(name, run);
  }
});

describe("the contract can fail", () => {
  const failures = async (
    broken: Partial<AmpPrimitives<Float32Array>>,
  ): Promise<readonly string[]> => {
    const failed: string[] = [];
    const make = () => harness({ ...float32Primitives, ...broken });
    for (const { name, run } of ampPrimitivesContract("broken", make)) {
      await run().catch((error: unknown) => failed.push(`${name}: ${error}`));
    }
    return failed;
  };

  test("when the last element of odd lengths is not looked at", async () => {
    const failed = await failures({
      check: (gradients, foundInf) =>
        float32Primitives.check(
          gradients.map((each) => ({ ...each, length: (each.length ?? 0) & ~1 })),
          foundInf,
        ),
    });
    expect(failed).toContainEqual(expect.stringContaining("any index of 257: Error: foundInf"));
  });

  test("when float16's largest number counts as infinite", async () => {
    const failed = await failures({
      check: (gradients, foundInf) => {
        if (gradients.some(({ buffer }) => buffer.some((value) => !(Math.abs(value) < 65504)))) {
          foundInf[0] = 1;
        }
      },
    });
    expect(failed).toContainEqual(expect.stringContaining("no finite one"));
  });

  test("when subnormal scales are flushed", async () => {
    const failed = await failures({
      updateScale: (update: ScaleUpdate<Float32Array>) => {
        float32Primitives.updateScale(update);
        const { state } = update;
        if ((state[0] as number) < 2 ** -126) state[0] = 0;
      },
    });
    expect(failed).toEqual([
      expect.stringContaining("equals nextScaleState: down to zero"),
      expect.stringContaining("equals nextScaleState: odd factors down to zero"),
    ]);
  });

  test("when flags are not cleared, the ring is short, or reading is late", async () => {
    const sticky = await failures({
      updateScale: (update) => {
        const flags = update.foundInfs.map((found) => found.slice());
        float32Primitives.updateScale(update);
        for (const [i, found] of update.foundInfs.entries()) found.set(flags[i] ?? []);
      },
    });
    expect(sticky).toContainEqual(expect.stringContaining("until the update"));
    const short = await failures({
      updateScale: (update) =>
        float32Primitives.updateScale({ ...update, tag: ((update.tag - 1) % 128) + 1 }),
    });
    expect(short).toContainEqual(expect.stringContaining("last 256 outcomes"));
    const late = await failures({
      read: (buffer) => Promise.resolve().then(() => buffer.slice()),
    });
    expect(late).toContainEqual(expect.stringContaining("snapshot in program order"));
  });

  test("when the hysteresis tracker is ignored", async () => {
    const failed = await failures({
      updateScale: (update) =>
        float32Primitives.updateScale({ ...update, rule: { ...update.rule, hysteresis: 1 } }),
    });
    expect(failed).toEqual([
      expect.stringContaining("equals nextScaleState: apexHysteresis"),
      expect.stringContaining("equals nextScaleState: megatron"),
      expect.stringContaining("equals nextScaleState: deepspeed"),
    ]);
  });
});
