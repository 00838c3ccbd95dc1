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
import { type LabelledRows, labelledRows } from "./labelled-rows.js";
import type { OwnData } from "./own-file.js";
import { openParquet } from "./parquet/read-parquet.js";
import { type LabelledLine, requireClasses, requireLabels } from "./plausible-classes.js";
import { hasLists, listedSentences } from "./tagged-rows.js";

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
  const texts = own.data.endsWith(".parquet")
    ? await parquetTexts(own)
    : [await readTextFile(own.data, own)];
  const lines = texts.flatMap((text) => text.split(/\r?\n/)).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new DataError(own.data, "has no text");
  return lines;
}

/** The texts of a Parquet file. */
async function parquetTexts({ data, textColumn }: OwnData): Promise<readonly string[]> {
  const column = textColumn ?? "text";
  const rows = await (await openParquet(data)).rows([column]);
  return rows.map(({ [column]: text }, i) => {
    if (typeof text === "string") return text;
    throw new DataError(data, `row ${i + 1} needs ${JSON.stringify(column)}, a text`);
  });
}

/** `word/tag` words, a sentence a line; columns; or lists of words and tags. @throws DataError */
export async function readOwnTags(own: OwnData): Promise<Read<Tagged>> {
  const listed = hasLists(own) ? await listedSentences(own) : undefined;
  const known = own.labels ?? listed?.names;
  const places = new Map<string, number>(known?.map((label, i) => [label, i]));
  const placeOf = (tag: string): number | undefined => {
    if (!own.labels && !places.has(tag)) places.set(tag, places.size);
    return places.get(tag);
  };
  const text = listed ? "" : await readTextFile(own.data, own);
  const named = listed?.sentences ?? (hasColumns(own) ? columnSentences(text, own) : undefined);
  const examples = named
    ? named.map(({ tags, ...sentence }) => ({
        ...sentence,
        tags: tags.map(
          (tag) => placeOf(tag) ?? refuseLabel(own, `has the tag ${JSON.stringify(tag)}`),
        ),
      }))
    : taggedSentences(text, own.data, placeOf);
  const labels = [...places.keys()];
  const words = examples.reduce((sum, sentence) => sum + sentence.words.length, 0);
  if (words === 0)
    throw new DataError(own.data, "has no word/tag words: put a sentence of them into each line");
  if (!own.labels && labels.length > 10 && 2 * labels.length > words)
    throw new DataError(
      own.data,
      `has ${labels.length} tags for ${words} words, such as ${JSON.stringify(labels[0])}: put a sentence of word/tag words into each line, with the tag behind the last slash`,
    );
  return { labels, examples };
}

/** Texts and their classes. @throws DataError, also for implausible classes */
export async function readOwnClasses(own: OwnData): Promise<Read<Labelled>> {
  const rows = await labelledRows(own);
  const { lines } = rows;
  if (!own.labels) requireClasses(own.data, lines, own);
  const { labels, placesOf } = labelPlaces(rows, own);
  const examples = lines.map((line) => ({
    ...textOf(line),
    label: placesOf(line)[0] as number,
  }));
  return { labels, examples };
}

/** Texts that may have several labels. @throws DataError, also for implausible labels */
export async function readOwnLabelSets(own: OwnData): Promise<Read<MultiLabelled>> {
  const rows = await labelledRows(own);
  const { lines } = rows;
  if (!own.labels) requireLabels(own.data, lines);
  const { labels, placesOf } = labelPlaces(rows, own);
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
  { lines, names }: LabelledRows,
  own: OwnData,
): {
  readonly labels: readonly string[];
  readonly placesOf: (line: LabelledLine) => readonly number[];
} {
  const known = own.labels ?? own.labelNames ?? names;
  const labels = known ?? inOrder(new Set(lines.flatMap((line) => line.labels)));
  const places = new Map(labels.map((label, place) => [label, place]));
  const placesOf = ({ place: where, labels: given }: LabelledLine): readonly number[] =>
    given.map((label) => {
      // Models of others, and flags, may have names where published data have numbers.
      const number = known && /^\d+$/.test(label) ? Number(label) : undefined;
      const place =
        places.get(label) ?? (number !== undefined && number < labels.length ? number : undefined);
      return (
        place ??
        refuseLabel({ data: own.data, labels }, `${where} has the label ${JSON.stringify(label)}`)
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
