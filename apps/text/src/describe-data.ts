import { DataError } from "@halfstep/data";
import type { TaskData } from "./tasks.js";

/** Describes the data in two lines, which reveal swapped columns: the labels, and one example. */
export function describeData({ kind, labels, splits }: TaskData): readonly string[] {
  const [first] = splits.train;
  if (kind === "text") return first === undefined ? [] : [`for example: ${cut(first as string)}`];
  const counts = new Array<number>(labels.length).fill(0);
  const count = (label: number): void => {
    counts[label] = (counts[label] as number) + 1;
  };
  const lines: string[] = [];
  if (kind === "classes") {
    for (const { label } of splits.train) count(label);
    const [example] = splits.train;
    if (example) lines.push(`for example, ${labels[example.label]}: ${cut(example.text)}`);
  } else {
    for (const { tags } of splits.train) tags.forEach(count);
    const [example] = splits.train;
    const tagged = example?.words.map((word, i) => `${word}/${labels[example.tags[i] as number]}`);
    if (tagged) lines.push(`for example: ${cut(tagged.join(" "))}`);
  }
  const order = [...labels.keys()].sort((a, b) => (counts[b] as number) - (counts[a] as number));
  const most = order.slice(0, 8).map((label) => `${cut(labels[label] as string)} ${counts[label]}`);
  const rest = order.length - most.length;
  const unseen = counts.filter((times) => times === 0).length;
  lines.unshift(
    `${labels.length} ${kind}: ${most.join(", ")}${rest > 0 ? `, and ${rest} more` : ""}${unseen > 0 ? ` (${unseen} without an example to learn from)` : ""}`,
  );
  return lines;
}

/** @throws DataError where there are no examples to train on, or to test on */
export function requireSplits({ splits: { train, test } }: TaskData, source: string): void {
  const examples = train.length + test.length;
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      source,
      `has ${examples} examples: one in five is tested, so it needs 5 or more`,
    );
}

const longest = 72;

/** On one line, and no longer than one. */
const cut = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
};
