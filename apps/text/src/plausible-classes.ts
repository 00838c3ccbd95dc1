import { DataError } from "@halfstep/data";

/** A text with its class, and the line that it is on. */
export interface LabelledLine {
  readonly line: number;
  readonly label: string;
  readonly text: string;
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
  if (!first) throw new DataError(name, "has no examples: each line is a label and a text");
  const counts = new Map<string, number>();
  for (const { label } of lines) counts.set(label, (counts.get(label) ?? 0) + 1);
  const shown = JSON.stringify(
    first.label.length > 60 ? `${first.label.slice(0, 60)}…` : first.label,
  );
  const order =
    "labels come first and texts second: for another order add --label-column and --text-column, by name or number";
  if (counts.size > 2 && 2 * counts.size > lines.length)
    throw new DataError(
      name,
      `has ${counts.size} labels for ${lines.length} texts, such as ${shown} in line ${first.line}, and no classifier can learn that; ${order}`,
    );
  const texts = new Set(lines.map(({ text }) => text)).size;
  if (counts.size > 2 && texts < counts.size)
    throw new DataError(
      name,
      `has ${counts.size} labels, such as ${shown} in line ${first.line}, and ${texts} different texts; ${order}`,
    );
  const others = [...counts].filter(([label]) => label !== first.label);
  const isAlone = counts.get(first.label) === 1 && others.length > 0;
  if (header === undefined && isAlone && others.every(([, count]) => count > 1))
    throw new DataError(
      name,
      `line ${first.line} seems to be a header: no other line has the label ${shown}; add --header, or --no-header if it is an example`,
    );
  if (counts.size === 1)
    throw new DataError(name, `has one label, ${shown}: a classifier needs two or more`);
}
