import { DataError } from "./error.js";

/**
 * The rows of tab-separated values, without the empty lines between them. Fields are taken as they are: nothing is quoted and
 * nothing escaped, as in the files of GLUE.
 *
 * @param columns how many fields each row must have. Default: as many as the first row
 * @throws DataError with the number of the line that has more or fewer
 */
export function readTsv(
  text: string,
  { name = "TSV", columns }: { readonly name?: string; readonly columns?: number } = {},
): readonly (readonly string[])[] {
  let expected = columns;
  return filledLines(text).map(([line, number]) => {
    const fields = line.split("\t");
    expected ??= fields.length;
    if (fields.length !== expected)
      throw new DataError(
        name,
        `line ${number} has ${fields.length} tab-separated fields, not ${expected}`,
      );
    return fields;
  });
}

/**
 * The values of JSON Lines: one JSON value a line. Empty lines are left out.
 * @throws DataError with the number of the line that is no JSON
 */
export function readJsonLines(
  text: string,
  { name = "JSON Lines" }: { readonly name?: string } = {},
): readonly unknown[] {
  return filledLines(text).map(([line, number]) => {
    try {
      return JSON.parse(line);
    } catch (error) {
      throw new DataError(name, `line ${number} is no JSON (${(error as Error).message})`);
    }
  });
}

/** Lines with something on them, and their numbers from 1 on. */
const filledLines = (text: string): readonly (readonly [line: string, number: number])[] =>
  text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map((line, i) => [line, i + 1] as const)
    .filter(([line]) => line.trim() !== "");
