import type { TaskData } from "./tasks.js";

/** The number of training examples of each label: texts, or words of taggers. Empty for texts without labels. */
export function labelCounts({ kind, labels, splits }: TaskData): readonly number[] {
  const counts = new Array<number>(labels.length).fill(0);
  const count = (label: number): void => {
    counts[label] = (counts[label] as number) + 1;
  };
  if (kind === "classes") for (const { label } of splits.train) count(label);
  if (kind === "labels") for (const each of splits.train) each.labels.forEach(count);
  if (kind === "tags") for (const { tags } of splits.train) tags.forEach(count);
  return counts;
}
