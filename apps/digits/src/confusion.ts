import type { ImageSet } from "@halfstep/data";
import { ConfusionMatrix } from "@halfstep/trainer";
import { classSections } from "@halfstep/trainer/report";
import { digitNames } from "./data.js";

/** Which digits were taken for which. The predictions are those of the images of a set in their order. */
export function confusionOf({ labels }: ImageSet, predictions: ArrayLike<number>): ConfusionMatrix {
  const confusion = new ConfusionMatrix(digitNames);
  confusion.add(labels, predictions);
  return confusion;
}

/** The report's tables for one precision: scores of the digits, and the matrix. */
export const confusionSections = (
  precision: string,
  test: ImageSet,
  predictions: ArrayLike<number>,
): ReturnType<typeof classSections> =>
  classSections(confusionOf(test, predictions)).map(({ title, ...section }) => ({
    title: `${title}, ${precision}`,
    ...section,
  }));

/** A row for each digit: how many of its images were taken for which digit. */
export function confusionLines(confusion: ConfusionMatrix): string {
  const rows = [confusion.labels.map(String), ...confusion.rows().map((row) => row.map(String))];
  const width = Math.max(...rows.flat().map(({ length }) => length));
  return rows
    .map((row, i) => {
      const name = i === 0 ? " " : confusion.labels[i - 1];
      return `${name} │ ${row.map((cell) => cell.padStart(width)).join(" ")}`;
    })
    .join("\n");
}
