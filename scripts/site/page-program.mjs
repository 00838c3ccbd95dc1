/**
 * The programs of a page: its ```ts blocks in order. A line `<!-- example -->` before a block, as in READMEs, begins the next program; the
 * blocks after it go on in the same module. What a block prints stands in a ```text block directly below it.
 * @param {string} page
 * @returns {{ code: string, output: string }[][]}
 */
export const pagePrograms = (page) => {
  const programs = [];
  const blocks = /^(<!-- example -->\n+)?```ts\n(.*?)^```\n(?:\n+```text\n(.*?)^```)?/gms;
  for (const [, mark, code, output = ""] of page.matchAll(blocks)) {
    if (mark !== undefined || programs.length === 0) programs.push([]);
    programs.at(-1).push({ code, output: output.trimEnd() });
  }
  return programs;
};

/** Separates the output of blocks; no program prints it. */
const boundary = "\u001e\n";

/** One module of the blocks of a program, which prints a boundary after each. */
export const moduleOf = (blocks) =>
  blocks.map(({ code }) => `${code}console.log("\\u001e");\n`).join("\n");

/** What each block of such a module printed. */
export const outputsOf = (printed) =>
  printed
    .split(boundary)
    .slice(0, -1)
    .map((output) => output.trimEnd());
