/**
 * The programs of a page: its ```ts blocks in order. A line `<!-- example -->` before a block, as in READMEs, begins the next program. So
 * does a comment `<!-- given … -->` with code that readers need not see. Blocks after it continue the same module. The output of a block is
 * in a ```text block directly below it.
 * @param {string} page
 * @returns {{ given: string | undefined, mark: string | undefined, blocks: { code: string, output: string }[] }[]}
 */
export const pagePrograms = (page) => {
  const programs = [];
  const blocks =
    /^(?:<!-- (\w+)(?:\n((?:(?!-->).)*?)| )-->\n+)?```ts\n(.*?)^```\n(?:\n+```text\n(.*?)^```)?/gms;
  for (const [, mark, given, code, output = ""] of page.matchAll(blocks)) {
    if (mark !== undefined || programs.length === 0) programs.push({ mark, given, blocks: [] });
    programs.at(-1).blocks.push({ code, output: output.trimEnd() });
  }
  return programs;
};

/** Separates the output of blocks; no program prints it. */
const boundary = "\u001e\n";
const printBoundary = 'console.log("\\u001e");\n';

/** One module of a program, which prints a boundary before its first block and after each. */
export const moduleOf = ({ given = "", blocks }) =>
  [given, ...blocks.map(({ code }) => code)].map((code) => `${code}${printBoundary}`).join("\n");

/** The output of each block of such a module. */
export const outputsOf = (printed) =>
  printed
    .split(boundary)
    .slice(1, -1)
    .map((output) => output.trimEnd());
