import { describe, expect, it } from "vitest";
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
