import { DataError } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";
import { type MaskClasses, mostClasses } from "./masks.js";

/** The most bytes of a table of classes. */
const mostBytes = 2 ** 20;

/**
 * Reads a table of classes: a line each, `name,red,green,blue` as in CamVid's class_dict.csv and label_colors.txt, or `name,value` for
 * greys and indices, separated by commas, tabs or spaces; the name may come last. A first line without numbers is a heading; empty lines are
 * skipped. Names alone have the values 0, 1, 2 and so on.
 * @throws DataError where a line has another form, or a class occurs twice
 */
export async function readClassTable(path: string): Promise<MaskClasses> {
  const text = new TextDecoder().decode(await fileBytes(path, { most: mostBytes }));
  const lines = text.split(/\r?\n/).map((line, i) => ({ number: i + 1, ...rowOf(line) }));
  const rows = lines.filter(({ name, numbers }, i) => name !== "" || numbers.length > 0 || i < 0);
  const isOfNames = rows.length > 1 && rows.every(({ numbers }) => numbers.length === 0);
  if (isOfNames) for (const [i, row] of rows.entries()) rows[i] = { ...row, numbers: [i] };
  else if (rows[0]?.numbers.length === 0) rows.shift();
  const fail = (number: number, problem: string): never => {
    throw new DataError(path, `line ${number}: ${problem}`);
  };
  const wanted = rows[0]?.numbers.length;
  const values = rows.map(({ number, numbers, name }) => {
    if (name === "" || (wanted !== 1 && wanted !== 3) || numbers.length !== wanted)
      return fail(number, "is neither name,red,green,blue nor name,value as the lines before it");
    const most = wanted === 3 ? 255 : 65_535;
    if (numbers.some((value) => !Number.isInteger(value) || value < 0 || value > most))
      return fail(number, `numbers are whole and from 0 to ${most}`);
    return numbers.reduce((whole, value) => whole * 256 + value, 0);
  });
  const classes = rows.map(({ name }) => name);
  for (const list of [values, classes]) {
    const twice = list.findIndex((each, i) => (list as unknown[]).indexOf(each) < i);
    if (twice >= 0) fail(rows[twice]?.number ?? 0, `${list[twice]} is there already`);
  }
  if (rows.length < 2 || rows.length > mostClasses)
    throw new DataError(path, `has ${rows.length} classes: from 2 to ${mostClasses} are wanted`);
  return { maskKind: wanted === 3 ? "colour" : "grey", classes, maskValues: values };
}

/** The name of a line, and its numbers: before or behind it. */
function rowOf(line: string): { readonly name: string; readonly numbers: readonly number[] } {
  const fields = line
    .trim()
    .split(/\s*[,;\t]\s*|\s+/)
    .filter((field) => field !== "");
  const isNumber = (field: string): boolean => /^-?[\d.]+$/.test(field);
  const numbers = fields.filter(isNumber).map(Number);
  return { name: fields.filter((field) => !isNumber(field)).join(" "), numbers };
}
