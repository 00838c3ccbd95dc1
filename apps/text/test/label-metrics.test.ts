import { describe, expect, it } from "vitest";
import { describeCutOff } from "../src/figures.js";
import { entitiesOf, LabelMetrics, LabelSetMetrics, tableOf } from "../src/label-metrics.js";

describe("entities", () => {
  it.each([
    ["O B-PER I-PER O", ["1 2 PER"]],
    ["B-PER B-PER I-LOC", ["0 0 PER", "1 1 PER", "2 2 LOC"]],
    // IOB1: an entity begins without B, and B parts neighbours of one type.
    ["I-PER I-PER B-PER O I-LOC", ["0 1 PER", "2 2 PER", "4 4 LOC"]],
    // IOBES and BILOU.
    ["S-ORG B-PER I-PER E-PER E-PER", ["0 0 ORG", "1 3 PER", "4 4 PER"]],
    ["U-ORG B-PER L-PER U-PER", ["0 0 ORG", "1 2 PER", "3 3 PER"]],
    ["O O", []],
    ["", []],
  ])("of %j are those of conlleval", (tags, entities) => {
    expect(entitiesOf(tags === "" ? [] : tags.split(" "))).toEqual(entities);
  });
});

describe("figures of labels", () => {
  it("entities count whole", () => {
    const labels = ["O", "B-PER", "I-PER", "B-LOC"];
    const metrics = new LabelMetrics(labels);
    const numbers = (tags: string) => tags.split(" ").map((tag) => labels.indexOf(tag));
    // One of three is found whole, one is cut short, one is missed; one is invented.
    metrics.add(
      numbers("B-PER I-PER O B-LOC O O"),
      numbers("B-PER I-PER O B-LOC O O").fill(0, 3, 4),
    );
    metrics.add(numbers("B-PER I-PER O B-LOC"), numbers("B-PER O O O"));
    metrics.add(numbers("O"), numbers("B-LOC"));
    // 4 wanted, 3 predicted, 1 right.
    expect(metrics.figures().entityF1).toBeCloseTo((2 * 1) / (4 + 3));
  });

  it("words that were cut off are missed, in every figure alike", () => {
    const labels = ["O", "B-PER", "I-PER"];
    const metrics = new LabelMetrics(labels);
    metrics.add([0, 1, 2, 1, 0], [0, 1]);
    metrics.add([1], [1]);
    const { counts } = metrics;
    expect(counts.rows()).toEqual([
      [1, 0, 0],
      [0, 2, 0],
      [0, 0, 0],
    ]);
    expect([counts.cutOff, counts.cutOffWords]).toEqual([[1, 1, 1], 3]);
    // 3 of 6 words are right.
    expect(counts.accuracy()).toBe(1 / 2);
    expect(counts.classScores()).toEqual([
      { label: "O", examples: 2, predicted: 1, precision: 1, recall: 1 / 2, f1: 2 / 3, iou: 1 / 2 },
      {
        ...{ label: "B-PER", examples: 3, predicted: 2, precision: 1, recall: 2 / 3 },
        ...{ f1: 4 / 5, iou: 2 / 3 },
      },
      {
        ...{ label: "I-PER", examples: 1, predicted: 0, precision: Number.NaN, recall: 0 },
        ...{ f1: 0, iou: 0 },
      },
    ]);
    // 3 entities wanted, 2 predicted, of which one ends too early because of the cut.
    const { macroF1, entityF1 } = metrics.figures();
    expect(macroF1).toBeCloseTo((2 / 3 + 4 / 5 + 0) / 3);
    expect(entityF1).toBeCloseTo((2 * 1) / (3 + 2));
    expect(tableOf(counts)).toEqual([
      "                   O      B-PER      I-PER  (cut off)",
      "O                  1          0          0          1",
      "B-PER              0          2          0          1",
      "I-PER              0          0          0          1",
    ]);
    expect(describeCutOff(counts)).toEqual([
      "3 of 6 words are beyond the length of the model (--max_seq_length): they were cut off, and count as wrong",
    ]);
  });

  it("labels count alike", () => {
    const metrics = new LabelMetrics(["bad", "good", "never"]);
    for (const [wanted, predicted] of [
      [0, 0],
      [0, 1],
      [1, 1],
      [1, 1],
    ] as const)
      metrics.add([wanted], [predicted]);
    // F1 of bad: 2·1 / (2 + 1), of good: 2·2 / (2 + 3).
    expect(metrics.figures()).toEqual({ macroF1: expect.closeTo((2 / 3 + 4 / 5) / 2) });
    expect(metrics.counts.rows()).toEqual([
      [1, 1, 0],
      [0, 2, 0],
      [0, 0, 0],
    ]);
    expect(tableOf(metrics.counts)).toEqual([
      "           bad    good   never",
      "bad          1       1       0",
      "good         0       2       0",
      "never        0       0       0",
    ]);
    expect(describeCutOff(metrics.counts)).toEqual([]);
  });

  it("labels of texts that have several are listed, each with its figures", () => {
    const metrics = new LabelSetMetrics(["rude", "loud"]);
    metrics.add([1, 0], [1, 0]);
    metrics.add([1, 0], [0, 0]);
    expect(metrics.figures()).toMatchObject({ microF1: 2 / 3, exactMatch: 1 / 2 });
    expect(tableOf(metrics.counts)).toEqual([
      "               texts  precision     recall         F1",
      "rude               2     1.0000     0.5000     0.6667",
      "loud               0          –          –          –",
    ]);
  });
});
