import { expect, it } from "vitest";
import { Confusion, headline } from "../src/scores.js";

it("scores are those of the areas", () => {
  const confusion = new Confusion(["water", "land"]);
  //                  labels, predictions: hits 2 and 3, of 5 that were labelled land 3, predicted 4
  confusion.add([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]);
  confusion.add([255], [1]);
  const scores = confusion.scores();
  expect(scores).toEqual({
    accuracy: 5 / 6,
    dice: (4 / 5 + 6 / 7) / 2,
    meanIou: (2 / 3 + 3 / 4) / 2,
    ious: [2 / 3, 3 / 4],
    pixels: [3, 3],
  });
  expect(headline(["water", "land"], scores)).toEqual({ name: "landIou", value: 3 / 4 });
});

it("classes that are neither there nor found do not count", () => {
  const classes = ["a", "b", "c"];
  const confusion = new Confusion(classes);
  confusion.add([0, 0, 1], [0, 1, 1]);
  const scores = confusion.scores();
  expect(scores.ious).toEqual([1 / 2, 1 / 2, Number.NaN]);
  expect(scores.meanIou).toBe(1 / 2);
  expect(headline(classes, scores)).toEqual({ name: "meanIou", value: 1 / 2 });
});
