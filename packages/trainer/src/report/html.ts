export const escapeHtml = (value: string): string =>
  value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

/** Rows of plain text, the titles of the columns first. Numbers are aligned on the right, the first columns on the left. */
export const tableHtml = (
  [head = [], ...rows]: readonly (readonly string[])[],
  { textColumns = 1 }: { readonly textColumns?: number } = {},
): string => {
  const cell = (tag: string, content: string, column: number): string =>
    `<${tag}${column < textColumns ? ' class="text"' : ""}>${escapeHtml(content)}</${tag}>`;
  const row = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((content, column) => cell(tag, content, column)).join("")}</tr>`;
  return `<div class="wide"><table>\n<thead>${row("th", head)}</thead>\n<tbody>\n${rows.map((cells) => row("td", cells)).join("\n")}\n</tbody>\n</table></div>`;
};

/** A list of names and values, in as many columns as fit. */
export const listHtml = (entries: readonly (readonly [name: string, value: string])[]): string =>
  `<dl>\n${entries.map(([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`).join("\n")}\n</dl>`;
