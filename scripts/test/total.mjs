/**
 * Adds up the reports of vitest's JSON reporter. A file that fails outside its tests (an import that throws, a hook)
 * counts as one failure; a skipped test counts as one too, since a skip here hides a missing GPU.
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
      for (const { fullName, status } of bad) {
        fail(`${file.name}: ${fullName}${status === "failed" ? "" : ` (${status})`}`);
      }
      if (file.status !== "passed" && bad.length === 0)
        fail(`${file.name}: ${file.message.split("\n")[0]}`);
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
