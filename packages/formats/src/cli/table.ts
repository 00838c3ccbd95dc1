/** A piece of a cell, with the field of a code that it shows. */
interface Piece {
  readonly text: string;
  readonly hue: "sign" | "exponent" | "mantissa";
}

export type Cell = string | readonly Piece[];

const hues: Record<Piece["hue"], number> = { sign: 31, exponent: 32, mantissa: 36 };

/** Rows under a head, columns aligned left with two spaces between. Only pieces are coloured; they are joined by spaces. */
export function table(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  color: boolean,
): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) =>
    Math.max(...all.map((row) => plain(row[column] ?? "").length)),
  );
  const lines = all.map((row) =>
    row
      .map((cell, column) => {
        const padding = " ".repeat((widths[column] ?? 0) - plain(cell).length);
        return (color ? painted(cell) : plain(cell)) + padding;
      })
      .join("  ")
      .trimEnd(),
  );
  return lines.map((line) => `  ${line}\n`).join("");
}

const plain = (cell: Cell): string =>
  typeof cell === "string" ? cell : cell.map(({ text }) => text).join(" ");

const painted = (cell: Cell): string =>
  typeof cell === "string"
    ? cell
    : cell.map(({ text, hue }) => `\u001b[${hues[hue]}m${text}\u001b[0m`).join(" ");
