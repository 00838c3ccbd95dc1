import { DataError } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";
import { taggedSentences } from "./brown.js";
import { columnSentences, hasColumns } from "./columns.js";
import {
  type Labelled,
  type MultiLabelled,
  type Splits,
  splitOf,
  type Tagged,
} from "./examples.js";
import { labelledRows } from "./labelled-rows.js";
import type { OwnData } from "./own-file.js";
import { type LabelledLine, requireClasses, requireLabels } from "./plausible-classes.js";

/** The examples of a file, in two parts, or of a file to train on and one to test on. @throws DataError */
export async function ownSplits<Example>(
  own: OwnData,
  read: (own: OwnData) => Promise<Read<Example>>,
  fold: number,
): Promise<{ readonly labels: readonly string[]; readonly splits: Splits<Example> }> {
  const { labels, examples } = await read(own);
  if (own.testData === undefined) return { labels, splits: splitOf(examples, fold) };
  const { examples: test } = await read({ ...own, data: own.testData, labels });
  return { labels, splits: { train: examples, test } };
}

interface Read<Example> {
  readonly labels: readonly string[];
  readonly examples: readonly Example[];
}

/** Lines of text. @throws DataError */
export async function readOwnLines(own: OwnData): Promise<readonly string[]> {
  const text = await readTextFile(own.data, own);
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new DataError(own.data, "has no text");
  return lines;
}

/** `word/tag` words, a sentence a line; or columns. @throws DataError */
export async function readOwnTags(own: OwnData): Promise<Read<Tagged>> {
  const places = new Map<string, number>(own.labels?.map((label, i) => [label, i]));
  const placeOf = (tag: string): number | undefined => {
    if (!own.labels && !places.has(tag)) places.set(tag, places.size);
    return places.get(tag);
  };
  const text = await readTextFile(own.data, own);
  const examples = hasColumns(own)
    ? columnSentences(text, own).map(({ tags, ...sentence }) => ({
        ...sentence,
        tags: tags.map(
          (tag) => placeOf(tag) ?? refuseLabel(own, `has the tag ${JSON.stringify(tag)}`),
        ),
      }))
    : taggedSentences(text, own.data, placeOf);
  const labels = [...places.keys()];
  const words = examples.reduce((sum, sentence) => sum + sentence.words.length, 0);
  if (words === 0) throw new DataError(own.data, "has no word/tag words");
  if (!own.labels && labels.length > 10 && 2 * labels.length > words)
    throw new DataError(
      own.data,
      `has ${labels.length} tags for ${words} words, such as ${JSON.stringify(labels[0])}: each line is a sentence of word/tag words, with the tag behind the last slash`,
    );
  return { labels, examples };
}

/** Texts and their classes. @throws DataError, also for implausible classes */
export async function readOwnClasses(own: OwnData): Promise<Read<Labelled>> {
  const lines = await labelledRows(own);
  if (!own.labels) requireClasses(own.data, lines, own);
  const { labels, placesOf } = labelPlaces(lines, own);
  const examples = lines.map((line) => ({
    ...textOf(line),
    label: placesOf(line)[0] as number,
  }));
  return { labels, examples };
}

/** Texts that may have several labels. @throws DataError, also for implausible labels */
export async function readOwnLabelSets(own: OwnData): Promise<Read<MultiLabelled>> {
  const lines = await labelledRows(own);
  if (!own.labels) requireLabels(own.data, lines);
  const { labels, placesOf } = labelPlaces(lines, own);
  const examples = lines.map((line) => ({
    ...textOf(line),
    labels: [...new Set(placesOf(line))].sort((a, b) => a - b),
  }));
  return { labels, examples };
}

const textOf = ({ text, pair }: LabelledLine): Pick<Labelled, "text" | "pair"> => ({
  text,
  ...(pair !== undefined && { pair }),
});

/** The names of all labels, and the places among them of a line's labels. */
function labelPlaces(
  lines: readonly LabelledLine[],
  own: OwnData,
): {
  readonly labels: readonly string[];
  readonly placesOf: (line: LabelledLine) => readonly number[];
} {
  const known = own.labels ?? own.labelNames;
  const labels = known ?? inOrder(new Set(lines.flatMap((line) => line.labels)));
  const places = new Map(labels.map((label, place) => [label, place]));
  const placesOf = ({ line, labels: given }: LabelledLine): readonly number[] =>
    given.map((label) => {
      // Models of others, and flags, may have names where published data have numbers.
      const number = known && /^\d+$/.test(label) ? Number(label) : undefined;
      const place =
        places.get(label) ?? (number !== undefined && number < labels.length ? number : undefined);
      return (
        place ??
        refuseLabel(
          { data: own.data, labels },
          `line ${line} has the label ${JSON.stringify(label)}`,
        )
      );
    });
  return { labels, placesOf };
}

/** Labels in the order of letters; whole numbers in their own, so that a class has its number as its place. */
const inOrder = (labels: Iterable<string>): readonly string[] => {
  const sorted = [...labels].sort();
  return sorted.every((label) => /^-?\d+$/.test(label))
    ? sorted.sort((a, b) => Number(a) - Number(b))
    : sorted;
};

function refuseLabel({ data, labels = [] }: Pick<OwnData, "data" | "labels">, what: string): never {
  throw new DataError(data, `${what}, which is none of ${labels.join(", ")}`);
}
