import { csvRows, DataError, jsonRows, type Row, tsvRows } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";
import type { OwnData } from "./own-file.js";
import { withNames } from "./parquet/class-names.js";
import { openParquet } from "./parquet/read-parquet.js";
import { type LabelledLine, requireLabelled } from "./plausible-classes.js";

/** Usual names of the columns in headers, in lower case. */
const usualNames = {
  label: ["label", "labels", "class", "category", "target", "sentiment", "topic"],
  text: ["text", "sentence", "review", "message", "comment", "content", "document", "tweet"],
} as const;

type Column = keyof typeof usualNames;

/** The flag that names a column. */
const flags = { label: "--label-column", text: "--text-column" } as const;

/** The examples of a file. */
export interface LabelledRows {
  readonly lines: readonly LabelledLine[];
  /** The names of all classes, where the file itself says them. */
  readonly names?: readonly string[] | undefined;
}

/**
 * The rows of a file with texts and labels: tab-separated values, comma-separated ones (`.csv`), JSON Lines (`.jsonl`), or Parquet
 * (`.parquet`).
 * @throws DataError, also for rows without a label where each has one
 */
export async function labelledRows(own: OwnData): Promise<LabelledRows> {
  const rows = await rowsOf(own);
  if (!own.multiLabel) requireLabelled(own.data, rows.lines);
  return rows;
}

async function rowsOf(own: OwnData): Promise<LabelledRows> {
  const { data: name } = own;
  if (name.endsWith(".parquet")) return labelledParquet(own);
  const text = await readTextFile(name, own);
  if (name.endsWith(".jsonl"))
    return {
      lines: jsonRows(text, { name }).map(({ line, value }) =>
        labelledValue({ place: `line ${line}`, value }, own),
      ),
    };
  const rows = name.endsWith(".csv") ? csvRows(text, { name }) : tsvRows(text, { name });
  return { lines: labelledFields(rows, own) };
}

/** The rows of a Parquet file, with names for the numbers of classes where the file has them, and flags have not. */
async function labelledParquet(own: OwnData): Promise<LabelledRows> {
  const file = await openParquet(own.data);
  const nameOf = (column: Column): string =>
    own[`${column}Column`] ??
    usualNames[column].find((name) => file.columns.includes(name)) ??
    column;
  const [label, text] = [nameOf("label"), nameOf("text")];
  const labels = own.multiLabel ? listed(label) : [label];
  const pair = own.textPairColumn === undefined ? [] : [own.textPairColumn];
  const rows = await file.rows([...labels, text, ...pair]);
  const isNamed = labels.length === 1 && own.labelNames === undefined;
  const names = isNamed ? file.classNames.get(label) : undefined;
  const lines = rows.map((row, i) => {
    const place = `row ${i + 1}`;
    const value = names
      ? { ...row, [label]: withNames(row[label], names, { name: own.data, place }) }
      : row;
    return labelledValue({ place, value }, own);
  });
  return { lines, names };
}

/** An example in an object. */
function labelledValue(
  { place, value }: { readonly place: string; readonly value: unknown },
  own: OwnData,
): LabelledLine {
  const row = (value ?? {}) as Readonly<Record<string, unknown>>;
  const key = (column: Column): string =>
    own[`${column}Column`] ?? usualNames[column].find((name) => Object.hasOwn(row, name)) ?? column;
  const [labelKey, textKey] = [key("label"), key("text")];
  const { textPairColumn } = own;
  const isText = (name: string): boolean => typeof row[name] === "string";
  const labels = own.multiLabel ? labelsIn(row, labelKey) : [row[labelKey]];
  if (!labels?.every(isLabel) || !isText(textKey))
    throw new DataError(
      own.data,
      `${place} needs ${JSON.stringify(labelKey)}, ${own.multiLabel ? "a list of labels" : "a label"}, and ${JSON.stringify(textKey)}, a string: --label-column and --text-column name others`,
    );
  if (textPairColumn !== undefined && !isText(textPairColumn))
    throw new DataError(own.data, `${place} needs ${JSON.stringify(textPairColumn)}, a string`);
  return {
    ...{ place, labels: labels.map(String), text: row[textKey] as string },
    ...(textPairColumn !== undefined && { pair: row[textPairColumn] as string }),
  };
}

// Published data sets also use numbers as labels.
const isLabel = (value: unknown): boolean =>
  ["string", "number", "boolean", "bigint"].includes(typeof value);

/** Several labels of an object: a list, labels between commas, or the keys of a list that have 1 or true. */
function labelsIn(
  row: Readonly<Record<string, unknown>>,
  key: string,
): readonly unknown[] | undefined {
  const columns = listed(key);
  if (columns.length > 1)
    return columns.every((column) => Object.hasOwn(row, column))
      ? columns.filter((column) => ["1", "1.0", "true"].includes(String(row[column])))
      : undefined;
  const value = row[key];
  if (Array.isArray(value)) return value;
  return typeof value === "string" ? listed(value) : undefined;
}

/** What is between commas; nothing of an empty text. */
const listed = (text: string): readonly string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

function labelledFields(rows: readonly Row[], own: OwnData): readonly LabelledLine[] {
  const [first] = rows;
  if (!first) return [];
  const hasHeader = own.header ?? isHeader(first, own);
  const labelsOf = labelReader(first, hasHeader, own);
  const text = columnOf("text", first, hasHeader, own);
  const { textPairColumn } = own;
  const pair =
    textPairColumn === undefined
      ? undefined
      : namedColumn("--text-pair-column", textPairColumn, first, hasHeader, own);
  return rows.slice(hasHeader ? 1 : 0).map(({ line, fields }) => ({
    ...{ place: `line ${line}`, labels: labelsOf(fields), text: fields[text] as string },
    ...(pair !== undefined && { pair: fields[pair] as string }),
  }));
}

/** A function that reads the labels of a row: one; or, of several, those between commas, or the columns of a list that have a 1. */
function labelReader(
  first: Row,
  hasHeader: boolean,
  own: OwnData,
): (fields: readonly string[]) => readonly string[] {
  const columns = own.multiLabel ? listed(own.labelColumn ?? "") : [];
  if (columns.length > 1) {
    const places = columns.map((name) => ({
      name,
      place: namedColumn(flags.label, name, first, hasHeader, own),
    }));
    return (fields) =>
      places.flatMap(({ name, place }) => (Number(fields[place]) === 1 ? [name] : []));
  }
  const place = columnOf("label", first, hasHeader, own);
  return own.multiLabel
    ? (fields) => listed(fields[place] as string)
    : (fields) => [(fields[place] as string).trim()];
}

/** Whether the first line names the columns: it has a requested name, or two usual names. */
const isHeader = (first: Row, own: OwnData): boolean => {
  const { labelColumn, textColumn, textPairColumn } = own;
  const asked = [...listed(labelColumn ?? ""), textColumn, textPairColumn];
  return (
    asked.some((column) => column !== undefined && !isNumber(column)) ||
    (usual("label", first) >= 0 && usual("text", first) >= 0)
  );
};

const isNumber = (column: string): boolean => /^\d+$/.test(column);

/** The place of the first field that has a usual name, or −1. */
const usual = (column: Column, { fields }: Row): number => {
  const names: readonly string[] = usualNames[column];
  return fields.findIndex((field) => names.includes(field.trim().toLowerCase()));
};

/** The place of a column that a flag names, by its name in the header or by its number. */
function namedColumn(
  flag: string,
  asked: string,
  { fields }: Row,
  hasHeader: boolean,
  { data: name }: OwnData,
): number {
  const place = isNumber(asked)
    ? Number(asked) - 1
    : fields.findIndex((field) => hasHeader && field.trim() === asked);
  if (place >= 0 && place < fields.length) return place;
  const columns = hasHeader ? fields.map((field) => field.trim()).join(", ") : "no header";
  throw new DataError(
    name,
    `has no column ${JSON.stringify(asked)} for ${flag}: it has ${fields.length} (${columns})`,
  );
}

function columnOf(column: Column, first: Row, hasHeader: boolean, own: OwnData): number {
  const { data: name } = own;
  const { fields } = first;
  const asked = own[`${column}Column`];
  if (asked !== undefined) return namedColumn(flags[column], asked, first, hasHeader, own);
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
      ? `line ${first.line} has ${fields.length} field, and needs two, a label and a text: put a tab between them, or name the file .csv or .jsonl`
      : `has ${fields.length} columns: say by --label-column and --text-column which are meant, by name or number`,
  );
}
