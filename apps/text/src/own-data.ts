import { csvRows, DataError, jsonRows, type Row, tsvRows } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";
import { taggedSentences } from "./brown.js";
import { type ColumnsFile, columnSentences, hasColumns } from "./columns.js";
import { type Labelled, type Splits, splitOf, type Tagged } from "./examples.js";
import { type LabelledLine, requireClasses } from "./plausible-classes.js";

/** A custom file, with the options of reading it. */
export interface OwnData extends ColumnsFile {
  readonly data: string;
  /** A file to test on, in place of a part of `data`. */
  readonly testData?: string | undefined;
  /** Default: UTF-8, or UTF-16 with its mark. */
  readonly encoding?: string | undefined;
  /**
   * The column's name in the header, or its number from 1 on. Default: the second, or the header's usual name for text.
   */
  readonly textColumn?: string | undefined;
  /** As `textColumn`. Default: the first, or the header's usual name for labels. */
  readonly labelColumn?: string | undefined;
  /** Whether the first line names the columns. Default: true if it has names of {@link usualNames}. */
  readonly header?: boolean | undefined;
  /** The allowed labels. Default: all labels of the file. */
  readonly labels?: readonly string[] | undefined;
}

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
    ? columnSentences(text, own).map(({ words, tags }) => ({
        words,
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

/**
 * Texts and their classes: tab-separated values, comma-separated ones (`.csv`), or JSON Lines (`.jsonl`).
 * @throws DataError, also for implausible classes
 */
export async function readOwnClasses(own: OwnData): Promise<Read<Labelled>> {
  const { data: name, labels: known } = own;
  const text = await readTextFile(name, own);
  const lines = name.endsWith(".jsonl") ? labelledValues(text, own) : labelledRows(text, own);
  if (!known) requireClasses(name, lines, own);
  const labels = known ?? [...new Set(lines.map(({ label }) => label))].sort();
  const places = new Map(labels.map((label, place) => [label, place]));
  const examples = lines.map(({ line, label, text }) => {
    // Models of others may have names where published data have numbers.
    const number = known && /^\d+$/.test(label) ? Number(label) : undefined;
    const place =
      places.get(label) ?? (number !== undefined && number < labels.length ? number : undefined);
    return {
      text,
      label:
        place ??
        refuseLabel({ data: name, labels }, `line ${line} has the label ${JSON.stringify(label)}`),
    };
  });
  return { labels, examples };
}

function refuseLabel({ data, labels = [] }: Pick<OwnData, "data" | "labels">, what: string): never {
  throw new DataError(data, `${what}, which is none of ${labels.join(", ")}`);
}

function labelledValues(text: string, own: OwnData): readonly LabelledLine[] {
  const { data: name, labelColumn = "label", textColumn = "text" } = own;
  return jsonRows(text, { name }).map(({ line, value }) => {
    const row = (value ?? {}) as Readonly<Record<string, unknown>>;
    const [label, text] = [row[labelColumn], row[textColumn]];
    // Published data sets also use numbers as labels.
    if (!["string", "number", "boolean"].includes(typeof label) || typeof text !== "string")
      throw new DataError(
        name,
        `line ${line} needs ${JSON.stringify(labelColumn)}, a label, and ${JSON.stringify(textColumn)}, a string: --label-column and --text-column name others`,
      );
    return { line, label: String(label), text };
  });
}

/** Usual names of the two columns in headers, in lower case. */
const usualNames = {
  label: ["label", "labels", "class", "category", "target", "sentiment", "topic"],
  text: ["text", "sentence", "review", "message", "comment", "content", "document", "tweet"],
} as const;

type Column = keyof typeof usualNames;

function labelledRows(text: string, own: OwnData): readonly LabelledLine[] {
  const { data: name } = own;
  const rows = name.endsWith(".csv") ? csvRows(text, { name }) : tsvRows(text, { name });
  const [first] = rows;
  if (!first) return [];
  const hasHeader = own.header ?? isHeader(first, own);
  const labels = columnOf("label", first, hasHeader, own);
  const texts = columnOf("text", first, hasHeader, own);
  return rows.slice(hasHeader ? 1 : 0).map(({ line, fields }) => ({
    line,
    label: (fields[labels] as string).trim(),
    text: fields[texts] as string,
  }));
}

/** Whether the first line names the columns: it has a requested name, or two usual names. */
const isHeader = (first: Row, { labelColumn, textColumn }: OwnData): boolean =>
  [labelColumn, textColumn].some((column) => column !== undefined && !isNumber(column)) ||
  (usual("label", first) >= 0 && usual("text", first) >= 0);

const isNumber = (column: string): boolean => /^\d+$/.test(column);

/** The place of the first field that has a usual name, or −1. */
const usual = (column: Column, { fields }: Row): number => {
  const names: readonly string[] = usualNames[column];
  return fields.findIndex((field) => names.includes(field.trim().toLowerCase()));
};

function columnOf(column: Column, first: Row, hasHeader: boolean, own: OwnData): number {
  const { data: name } = own;
  const { fields } = first;
  const asked = own[`${column}Column`];
  if (asked !== undefined) {
    const place = isNumber(asked)
      ? Number(asked) - 1
      : fields.findIndex((field) => hasHeader && field.trim() === asked);
    if (place >= 0 && place < fields.length) return place;
    const columns = hasHeader ? fields.map((field) => field.trim()).join(", ") : "no header";
    throw new DataError(
      name,
      `has no column ${JSON.stringify(asked)} for --${column}-column: it has ${fields.length} (${columns})`,
    );
  }
  const found = hasHeader ? usual(column, first) : -1;
  if (found >= 0) return found;
  if (fields.length === 2) {
    const other = own[column === "label" ? "textColumn" : "labelColumn"];
    if (other === undefined) return column === "label" ? 0 : 1;
    if (isNumber(other)) return Number(other) === 1 ? 1 : 0;
    return fields.findIndex((field) => field.trim() !== other);
  }
  throw new DataError(
    name,
    fields.length < 2
      ? `line ${first.line} has ${fields.length} field, and needs two, a label and a text: label TAB text, or .csv or .jsonl by its name`
      : `has ${fields.length} columns: say by --label-column and --text-column which are meant, by name or number`,
  );
}
