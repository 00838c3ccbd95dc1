import { DataError } from "@halfstep/data";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { epochsOf } from "../src/train.js";
import { batchesPerEpoch, evaluationWindows, trainingWindows } from "../src/windows.js";

const tokens = Uint32Array.from({ length: 1000 }, (_, i) => i);
const options = { tokens, context: 8, batchSize: 4, seed: 3 };

describe("windows for training", () => {
  it("go through the text once in an epoch, each followed by its next tokens", () => {
    const batches = [...trainingWindows(options, 0)];
    expect(batches).toHaveLength(batchesPerEpoch(options));
    const seen = batches.flatMap(({ inputs }) => [...inputs]);
    expect(new Set(seen).size).toBe(seen.length);
    for (const { inputs, targets } of batches)
      expect([...targets]).toEqual(Array.from(inputs, (token) => token + 1));
  });

  it("make as many epochs as their steps take", () => {
    const epochs = (maxSteps: number, accumulate = 1): number =>
      epochsOf({ ...options, job: undefined, maxSteps, accumulate });
    const whole = batchesPerEpoch(options);
    expect(whole).toBe(31);
    expect([epochs(1), epochs(31), epochs(32), epochs(310)]).toEqual([1, 1, 2, 10]);
    // Sixteen steps of two batches, the last of which is one.
    expect([epochs(16, 2), epochs(17, 2), epochs(2, 100)]).toEqual([1, 2, 2]);
  });

  it("are others in another epoch, and the same in the same", () => {
    const first = (epoch: number) => trainingWindows(options, epoch).next().value?.inputs;
    expect(first(1)).not.toEqual(first(0));
    expect(first(1)).toEqual(first(1));
  });

  it("go on where an epoch was left", () => {
    expect([...trainingWindows(options, 2, 5)]).toEqual([...trainingWindows(options, 2)].slice(5));
  });

  it("that do not fill a batch are refused in a line", () => {
    const short = { ...options, tokens: tokens.subarray(0, 32) };
    expect(() => batchesPerEpoch(short)).toThrow(DataError);
    expect(() => batchesPerEpoch(short)).toThrow(/32 tokens.*lower --batch-size or --context$/);
  });
});

describe("windows for evaluation", () => {
  it("predict each token but the first once, with enough before it", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 60 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 5 }),
        (length, context, wanted, batchSize) => {
          const stride = Math.min(wanted, context);
          const text = tokens.subarray(0, length);
          const windows = [...evaluationWindows(text, { context, stride, batchSize })];
          const predicted = windows.flatMap(({ targets }) => [...targets]);
          expect(predicted).toEqual([...text.subarray(1)]);
          for (const { inputs, targets, rows, length: seen, scored } of windows)
            for (let row = 0; row < rows; row++)
              expect(targets[(row + 1) * scored - 1]).toBe(
                (inputs[(row + 1) * seen - 1] as number) + 1,
              );
        },
      ),
    );
  });
});
