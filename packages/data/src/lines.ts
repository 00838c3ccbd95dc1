import { requireOptions, requireText } from "./checks.js";
import { DataError } from "./error.js";

/** Options of reading rows. */
export interface RowOptions {
  /** For messages. */
  readonly name?: string;
  /** How many fields each row must have. Default: as many as the first row. */
  readonly columns?: number;
}

const rowOptions: readonly (keyof RowOptions)[] = ["name", "columns"];

/** A row, and the number of the line that it begins on, from 1 on. */
export interface Row {
  readonly line: number;
  readonly fields: readonly string[];
}

/**
 * The rows of tab-separated values, without lines that have no character at all. Fields are taken as they are: nothing is quoted and
 * nothing escaped, as in the files of GLUE.
 *
 * @throws DataError with the number of the line that has more or fewer fields; TypeError for what is no text
 */
export const readTsv = (text: string, options: RowOptions = {}): readonly (readonly string[])[] =>
  tsvRows(text, options).map(({ fields }) => fields);

/** {@link readTsv} with the numbers of the lines. */
export function tsvRows(text: string, options: RowOptions = {}): readonly Row[] {
  requireText("readTsv and tsvRows", text);
  requireOptions("readTsv and tsvRows", options, rowOptions);
  const { name = "TSV", columns } = options;
  return alike(
    linesOf(text, (line) => line !== "").map(([line, number]) => ({
      line: number,
      fields: line.split("\t"),
    })),
    { name, columns, separated: "tab-separated" },
  );
}

/**
 * The rows of comma-separated values (RFC 4180), without lines that have no character at all: a field in quotes may have commas and
 * line ends, and a doubled quote stands for one.
 *
 * @throws DataError with the number of the line that has more or fewer fields, or whose quotes are wrong; TypeError for what is no text
 */
export const readCsv = (text: string, options: RowOptions = {}): readonly (readonly string[])[] =>
  csvRows(text, options).map(({ fields }) => fields);

/** {@link readCsv} with the numbers of the lines that rows begin on. */
export function csvRows(text: string, options: RowOptions = {}): readonly Row[] {
  requireText("readCsv and csvRows", text);
  requireOptions("readCsv and csvRows", options, rowOptions);
  const { name = "CSV", columns } = options;
  // A field, in quotes or not, and what ends it: a comma, a line end, or the end of the text.
  const field = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r\n?|\n|$)/y;
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  const rows: Row[] = [];
  let fields: string[] = [];
  let [line, first] = [1, 1];
  for (let at = start; at < text.length || fields.length > 0; ) {
    field.lastIndex = at;
    const found = field.exec(text);
    if (!found)
      throw new DataError(
        name,
        `line ${line} has a quote that is not closed, or not at the ends of its field: a field with quotes, commas or line ends is put in quotes, and each quote in it doubled`,
      );
    const [whole, quoted, plain = "", end] = found;
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    at += whole.length;
    line += whole.split(/\r\n?|\n/).length - 1;
    if (end === ",") continue;
    // A line of white space is a field, and so is one of two quotes.
    if (fields.length > 1 || fields[0] !== "" || quoted !== undefined)
      rows.push({ line: first, fields });
    fields = [];
    first = line;
  }
  return alike(rows, { name, columns, separated: "comma-separated" });
}

/** The rows, all with as many fields. */
function alike(
  rows: readonly Row[],
  { name, columns, separated }: { name: string; columns: number | undefined; separated: string },
): readonly Row[] {
  const expected = columns ?? rows[0]?.fields.length;
  const odd = rows.find(({ fields }) => fields.length !== expected);
  if (odd)
    throw new DataError(
      name,
      `line ${odd.line} has ${odd.fields.length} ${separated} fields, not ${expected}: give every line as many`,
    );
  return rows;
}

/**
 * The values of JSON Lines: one JSON value a line. Empty lines are left out.
 * @throws DataError with the number of the line that is no JSON; TypeError for what is no text
 */
export const readJsonLines = (
  text: string,
  options: Pick<RowOptions, "name"> = {},
): readonly unknown[] => jsonRows(text, options).map(({ value }) => value);

/** {@link readJsonLines} with the numbers of the lines. */
export function jsonRows(
  text: string,
  options: Pick<RowOptions, "name"> = {},
): readonly { readonly line: number; readonly value: unknown }[] {
  requireText("readJsonLines and jsonRows", text);
  requireOptions("readJsonLines and jsonRows", options, ["name"]);
  const { name = "JSON Lines" } = options;
  // White space is no value, and means nothing around one.
  return linesOf(text, (line) => line.trim() !== "").map(([line, number]) => {
    try {
      return { line: number, value: JSON.parse(line) };
    } catch (error) {
      throw new DataError(
        name,
        `line ${number} is no JSON (${(error as Error).message}): put one object into each line`,
      );
    }
  });
}

/** The lines that are wanted, and their numbers from 1 on. A carriage return alone ends lines only where nothing else does. */
const linesOf = (
  text: string,
  isWanted: (line: string) => boolean,
): readonly (readonly [line: string, number: number])[] =>
  text
    .replace(/^\uFEFF/, "")
    .split(text.includes("\n") ? /\r?\n/ : "\r")
    .map((line, i) => [line, i + 1] as const)
    .filter(([line]) => isWanted(line));
