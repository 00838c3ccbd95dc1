import { DataError } from "@halfstep/data";

/** A text with its labels, and where it is. */
export interface LabelledLine {
  /** "line 3", or "row 3" of a file without lines. */
  readonly place: string;
  /** One, unless a text may have several. */
  readonly labels: readonly string[];
  readonly text: string;
  /** The second text of a pair. */
  readonly pair?: string | undefined;
}

/**
 * Refuses texts whose label is empty: they would be a class without a name.
 * @throws DataError with the remedy
 */
export function requireLabelled(name: string, lines: readonly LabelledLine[]): void {
  const empty = lines.filter(({ labels: [label = ""] }) => label.trim() === "");
  const [first] = empty;
  if (!first) return;
  const others = empty.length - 1;
  throw new DataError(
    name,
    `${first.place} has an empty label${others > 0 ? `, as ${others} more of ${lines.length} have` : ""}: give it one, or take it out; --label-column says which column has the labels`,
  );
}

/**
 * Refuses implausible classes: none or only one, a header among them, or so many that they are probably texts.
 * @throws DataError with the remedy
 */
export function requireClasses(
  name: string,
  lines: readonly LabelledLine[],
  { header }: { readonly header?: boolean | undefined },
): void {
  const [first] = lines;
  if (!first) throw new DataError(name, "has no examples: put a label and a text into each line");
  const counts = countsOf(lines);
  const firstLabel = first.labels[0] ?? "";
  const shown = short(firstLabel);
  const numbers = [...counts.keys()].map(Number);
  const broken = numbers.find((number) => !Number.isInteger(number));
  if (counts.size > 2 && broken !== undefined && numbers.every(Number.isFinite))
    throw new DataError(
      name,
      `has labels that are numbers such as ${broken}, which is a regression as of STS-B: only classes are learnt, so give each range of numbers a name`,
    );
  const order =
    "labels come first and texts second: for another order add --label-column and --text-column, by name or number";
  if (counts.size > 2 && 2 * counts.size > lines.length)
    throw new DataError(
      name,
      `has ${counts.size} labels for ${lines.length} texts, such as ${shown} in ${first.place}, and no classifier can learn that; ${order}`,
    );
  const texts = new Set(lines.map(({ text }) => text)).size;
  if (counts.size > 2 && texts < counts.size)
    throw new DataError(
      name,
      `has ${counts.size} labels, such as ${shown} in ${first.place}, and ${texts} different texts; ${order}`,
    );
  const others = [...counts].filter(([label]) => label !== firstLabel);
  const isAlone = counts.get(firstLabel) === 1 && others.length > 0;
  if (header === undefined && isAlone && others.every(([, count]) => count > 1))
    throw new DataError(
      name,
      `${first.place} seems to be a header: no other line has the label ${shown}; add --header, or --no-header if it is an example`,
    );
  if (counts.size === 1)
    throw new DataError(name, `has one label, ${shown}: give texts of two or more`);
}

/**
 * Refuses implausible labels of texts that may have several: fewer than two, or so many that they are probably texts.
 * @throws DataError with the remedy
 */
export function requireLabels(name: string, lines: readonly LabelledLine[]): void {
  const counts = countsOf(lines);
  const [first = ""] = counts.keys();
  if (counts.size < 2)
    throw new DataError(
      name,
      `has ${counts.size} labels, and two or more are wanted: with --multi-label they are between commas, lists of JSON, or the columns that --label-column lists`,
    );
  if (2 * counts.size > lines.length)
    throw new DataError(
      name,
      `has ${counts.size} labels for ${lines.length} texts, such as ${short(first)}: --label-column and --text-column say which columns are meant`,
    );
}

function countsOf(lines: readonly LabelledLine[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const label of lines.flatMap(({ labels }) => labels))
    counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
}

const short = (label: string): string =>
  JSON.stringify(label.length > 60 ? `${label.slice(0, 60)}…` : label);
