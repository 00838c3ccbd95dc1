import { cpuRuntime } from "@halfstep/tensor";
import { describe, expect, it, test } from "vitest";
import { balancedPositives, balancedWeights, describeImbalance } from "./class-balance.js";
import { classificationLoss, ignoredLabel, labelSetLoss } from "./classification-loss.js";
import { ConfusionMatrix, macroF1 } from "./confusion-matrix.js";
import { LabelSetCounts } from "./label-sets.js";

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

describe("the loss of classes", () => {
  const logits = [
    [2, -1, 0.5],
    [0, 3, 1],
    [1, 1, 1],
  ];
  const labels = [0, 2, 1];
  /** −log p of the label in each row. */
  const losses = logits.map((row, i) => {
    const total = Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
    return total - (row[labels[i] as number] as number);
  });
  const runtime = cpuRuntime();
  const lossOf = (
    options: Parameters<typeof classificationLoss>[3],
    given: readonly number[] = labels,
  ): Promise<number> => {
    const count = given.filter((label) => label !== ignoredLabel).length;
    const rows = runtime.tensor(Float32Array.from(logits.flat()), [3, 3]);
    return classificationLoss(rows, runtime.tensor(Uint32Array.from(given)), count, options).item();
  };

  it("is cross-entropy, smoothed, weighted, or focal", async () => {
    expect(await lossOf({})).toBeCloseTo(mean(losses), 6);
    const even = logits.map((row) => {
      const total = Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
      return mean(row.map((x) => total - x));
    });
    expect(await lossOf({ labelSmoothing: 0.1 })).toBeCloseTo(
      mean(losses.map((loss, i) => 0.9 * loss + 0.1 * (even[i] as number))),
      6,
    );
    const weights = [4, 0.5, 1];
    const ofLabels = labels.map((label) => weights[label] as number);
    expect(await lossOf({ weight: runtime.tensor(weights) })).toBeCloseTo(
      mean(losses.map((loss, i) => loss * (ofLabels[i] as number))) / mean(ofLabels),
      6,
    );
    expect(await lossOf({ focal: 2 })).toBeCloseTo(
      mean(losses.map((loss) => (1 - Math.exp(-loss)) ** 2 * loss)),
      6,
    );
  });

  it("leaves rows out that have no label", async () => {
    const some = [0, ignoredLabel, 1];
    const [first, , third] = losses as [number, number, number];
    expect(await lossOf({}, some)).toBeCloseTo(mean([first, third]), 6);
    expect(await lossOf({ focal: 1 }, some)).toBeCloseTo(
      mean([first, third].map((loss) => (1 - Math.exp(-loss)) * loss)),
      6,
    );
  });

  it("of several labels is that of each, with weights of those that are there", async () => {
    const scores = [2, -1, 0.5, -3];
    const targets = [1, 0, 0, 1];
    const factors = [3, 1];
    const expected = (smoothing: number, weights: readonly number[]): number =>
      mean(
        scores.map((x, i) => {
          const t = (targets[i] as number) * (1 - smoothing) + smoothing / 2;
          const log = (p: number): number => Math.log(p);
          const p = 1 / (1 + Math.exp(-x));
          return -(weights[i % 2] as number) * t * log(p) - (1 - t) * log(1 - p);
        }),
      );
    const given = [runtime.tensor(scores, [2, 2]), runtime.tensor(targets, [2, 2])] as const;
    expect(await labelSetLoss(...given).item()).toBeCloseTo(expected(0, [1, 1]), 6);
    const weight = runtime.tensor(factors);
    expect(await labelSetLoss(...given, { labelSmoothing: 0.2, weight }).item()).toBeCloseTo(
      expected(0.2, factors),
      6,
    );
  });
});

test("balanced weights make classes count alike", () => {
  const counts = [90, 0, 30];
  const weights = balancedWeights(counts);
  expect([...weights].map((weight) => weight.toFixed(4))).toEqual(["0.6667", "1.0000", "2.0000"]);
  expect([...balancedPositives([20, 0, 50], 50)]).toEqual([1.5, 1, 1]);
});

test("classes that differ much in number are said so", () => {
  const labels = ["ham", "spam", "never"];
  expect(describeImbalance(labels, [30, 10, 0])).toBeUndefined();
  expect(describeImbalance(labels, [])).toBeUndefined();
  expect(describeImbalance(labels, [9000, 1000, 0])).toBe(
    "unbalanced: always ham is right in 90.0 %, and spam is 9 times rarer",
  );
});

describe("counts of a test", () => {
  it("are by class and predicted class", () => {
    const confusion = new ConfusionMatrix(["bad", "good", "never"]);
    confusion.add([0, 0, 1, 1], [0, 1, 1, 1]);
    // Neither class nor prediction.
    confusion.add([-1, 0, 4], [0, 3, 1]);
    expect(confusion.rows()).toEqual([
      [1, 1, 0],
      [0, 2, 0],
      [0, 0, 0],
    ]);
    const scores = confusion.classScores();
    expect(scores[1]).toEqual({
      ...{ label: "good", examples: 2, predicted: 3, recall: 1 },
      ...{ precision: 2 / 3, f1: 4 / 5, iou: 2 / 3 },
    });
    expect(scores[2]?.f1).toBeNaN();
    expect(confusion.accuracy()).toBe(3 / 4);
    expect(macroF1(scores)).toBeCloseTo((2 / 3 + 4 / 5) / 2);
  });

  it("are by label where an example has several", () => {
    const counts = new LabelSetCounts(["a", "b"]);
    counts.add([1, 0], [1, 0]);
    counts.add([1, 1], [1, 0]);
    counts.add([0, 0], [0, 1]);
    // a: 2 of 2, b: none of 1, and one invented.
    expect(counts.classScores().map(({ f1 }) => f1)).toEqual([1, 0]);
    expect(counts.figures()).toEqual({ microF1: 4 / 6, macroF1: 0.5, exactMatch: 1 / 3 });
  });
});
