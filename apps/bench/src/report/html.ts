import type { Cell, Table } from "./cells.js";
import type { Page } from "./tables.js";

/** One file without scripts, to be opened from disk. */
export const htmlOf = ({ title, paragraphs, tables }: Page): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 0.2rem 0.7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.loss { background: #fdd; font-weight: bold; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } th, td { border-color: #444; } .loss { background: #622; } }
</style>
<h1>${escaped(title)}</h1>
${paragraphs.map((text) => `<p>${escaped(text)}</p>`).join("\n")}
${tables.map(tableOf).join("\n")}
</html>
`;

const tableOf = ({ title, note, columns, rows }: Table): string => `<h2>${escaped(title)}</h2>
<p>${escaped(note)}</p>
<table>
<tr>${columns.map((column) => `<th>${escaped(column)}</th>`).join("")}</tr>
${rows.map((cells) => `<tr>${cells.map(cellOf).join("")}</tr>`).join("\n")}
</table>`;

const cellOf = ({ text, isLoss }: Cell): string =>
  `<td${isLoss ? ' class="loss"' : ""}>${escaped(text)}</td>`;

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
