import { stripVTControlCharacters } from "node:util";

/** A failure's lines that are kept: an assertion with its difference, or an error with the start of its stack. */
const messageLines = 16;

/** Lines as they stand under the name of what failed; `.ci/run` prints them again at its end. */
export const indented = (lines) => lines.map((line) => `\n        ${line}`).join("");

const startOf = (message) =>
  indented(stripVTControlCharacters(message).trimEnd().split("\n").slice(0, messageLines));

/**
 * Adds up the reports of vitest's JSON reporter. A file that fails outside its tests (an import that throws, a hook)
 * counts as one failure; a skipped test counts as one too, since a skip here hides a missing GPU. Each failure is a
 * test's name, and under it its first message.
 * @param {readonly string[]} reports
 * @returns {{ passed: number, failed: number, failures: string[] }}
 */
export const sumReports = (reports) => {
  const total = { passed: 0, failed: 0, failures: [] };
  const fail = (name) => {
    total.failed += 1;
    total.failures.push(name);
  };
  for (const report of reports) {
    for (const file of JSON.parse(report).testResults) {
      const bad = file.assertionResults.filter(({ status }) => status !== "passed");
      total.passed += file.assertionResults.length - bad.length;
      for (const { fullName, status, failureMessages } of bad) {
        const kind = status === "failed" ? "" : ` (${status})`;
        fail(
          `${file.name}: ${fullName}${kind}${failureMessages?.slice(0, 1).map(startOf).join("") ?? ""}`,
        );
      }
      if (file.status !== "passed" && bad.length === 0)
        fail(`${file.name}:${startOf(file.message)}`);
    }
  }
  return total;
};

/** The line that ends a test or gate run. */
export const totalLine = ({ passed, failed }) => `${passed} passed, ${failed} failed`;

/** Reads such a line back from the end of a log; undefined where the log has none. */
export const readTotal = (log) => {
  const match = [...log.matchAll(/^(\d+) passed, (\d+) failed$/gm)].at(-1);
  return match && { passed: Number(match[1]), failed: Number(match[2]) };
};
