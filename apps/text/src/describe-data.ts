import { DataError } from "@halfstep/data";
import { describeImbalance } from "@halfstep/trainer";
import type { GivenText } from "./examples.js";
import { labelCounts } from "./label-counts.js";
import type { TaskData } from "./tasks.js";

/** Describes the data in a few lines, which reveal swapped columns: the labels, whether some are rare, empty texts, and one example. */
export function describeData(data: TaskData): readonly string[] {
  const { kind, labels } = data;
  const example = exampleOf(data);
  const shown = example === undefined ? [] : [`for example${example}`];
  if (kind === "text") return shown;
  const counts = labelCounts(data);
  const order = [...labels.keys()].sort((a, b) => (counts[b] as number) - (counts[a] as number));
  const most = order.slice(0, 8).map((label) => `${cut(labels[label] as string)} ${counts[label]}`);
  const rest = order.length - most.length;
  const unseen = counts.filter((times) => times === 0).length;
  // The labels of one text do not exclude each other.
  const imbalance = kind === "labels" ? undefined : describeImbalance(labels, counts);
  return [
    `${labels.length} ${kind}: ${most.join(", ")}${rest > 0 ? `, and ${rest} more` : ""}${unseen > 0 ? ` (${unseen} without an example to learn from)` : ""}`,
    ...(imbalance === undefined ? [] : [imbalance]),
    ...describeEmpty(data),
    ...shown,
  ];
}

/** How many texts, or texts of pairs, are empty; nothing where none is. */
export function describeEmpty({ kind, splits }: TaskData): readonly string[] {
  if (kind !== "classes" && kind !== "labels") return [];
  const given: readonly GivenText[] = [...splits.train, ...splits.test];
  const texts = given.flatMap(({ text, pair }) => (pair === undefined ? [text] : [text, pair]));
  const empty = texts.filter((text) => text.trim() === "").length;
  if (empty === 0) return [];
  const [some, all] = [empty, texts.length].map((count) => count.toLocaleString("en"));
  return [`${some} of ${all} texts are empty, and count as the others`];
}

/** The first training example with its labels; undefined where there is none. */
function exampleOf({ kind, labels, splits }: TaskData): string | undefined {
  if (kind === "tags") {
    const [example] = splits.train;
    const tagged = example?.words.map((word, i) => `${word}/${labels[example.tags[i] as number]}`);
    return tagged && `: ${cut(tagged.join(" "))}`;
  }
  if (kind === "text") return splits.train[0] && `: ${cut(splits.train[0])}`;
  const [example] = splits.train;
  if (!example) return undefined;
  const given = "label" in example ? [example.label] : example.labels;
  const names = given.map((label) => labels[label]).join(" and ") || "no label";
  const pair = example.pair === undefined ? "" : ` | ${cut(example.pair)}`;
  return `, ${names}: ${cut(example.text)}${pair}`;
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
