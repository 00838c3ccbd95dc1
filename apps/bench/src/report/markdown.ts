import type { Cell, Table } from "./cells.js";
import type { Page } from "./tables.js";

export const markdownOf = ({ title, paragraphs, tables }: Page): string =>
  `${[`# ${title}`, ...paragraphs, ...tables.map(tableOf)].join("\n\n")}\n`;

const tableOf = ({ title, note, columns, rows }: Table): string =>
  [
    `## ${title}`,
    "",
    note,
    "",
    line(columns),
    line(columns.map((_, i) => (i === 0 ? "---" : "---:"))),
    ...rows.map((cells) => line(cells.map(textOf))),
  ].join("\n");

const line = (texts: readonly string[]): string => `| ${texts.join(" | ")} |`;

const textOf = ({ text, isLoss }: Cell): string => {
  const safe = text.replaceAll("|", "\\|");
  return isLoss ? `**${safe}**` : safe;
};
