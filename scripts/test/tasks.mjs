import { stripVTControlCharacters } from "node:util";

/** The last lines of a task that are shown: vitest prints errors outside tests, then its summary. */
const shownLines = 40;

/**
 * The tasks that turbo's summary calls failed, each with the last lines that it printed, lists of passed tests apart.
 * @param {string} output what `turbo run` printed
 * @returns {{ name: string, lines: string[] }[]}
 */
export const failedTasks = (output) => {
  const lines = stripVTControlCharacters(output).split(/\r?\n/);
  const summary = lines.findLast((line) => line.startsWith("Failed: "));
  const names = summary?.slice("Failed: ".length).trim().split(/, */) ?? [];
  return names.map((name) => {
    const prefix = `${name.replace("#", ":")}: `;
    const own = lines
      .filter((line) => line.startsWith(prefix) && !line.includes("✓"))
      .map((line) => line.slice(prefix.length));
    return { name, lines: own.slice(-shownLines) };
  });
};
