import type { Scores } from "./scores.js";

/** The IoU of each class and its share of the pixels that count, as text. Classes without pixels are left out. */
function classRows(
  classes: readonly string[],
  { ious, pixels }: Pick<Scores, "ious" | "pixels">,
): readonly (readonly [name: string, iou: string, share: string])[] {
  const total = pixels.reduce((sum, count) => sum + count, 0);
  return classes.flatMap((name, i) => {
    const [iou, count] = [ious[i] as number, pixels[i] as number];
    return Number.isNaN(iou)
      ? []
      : [[name, iou.toFixed(4), `${((100 * count) / total).toFixed(2)} %`] as const];
  });
}

/** Lines for a terminal. */
export function classLines(classes: readonly string[], scores: Scores): readonly string[] {
  const rows = [["class", "IoU", "of the pixels"] as const, ...classRows(classes, scores)];
  const width = (column: 0 | 1 | 2): number => Math.max(...rows.map((row) => row[column].length));
  return rows.map(
    ([name, iou, share]) =>
      `${name.padEnd(width(0))}  ${iou.padStart(width(1))}  ${share.padStart(width(2))}`,
  );
}
