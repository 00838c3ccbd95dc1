import { sumReports } from "../test/total.mjs";

/**
 * What a lane's tests showed. Failures that the lane's table lists are counted apart.
 * @param {readonly string[]} reports of vitest's JSON reporter
 * @param {readonly { test: string, why: string }[]} listed parts of the names of tests that fail on the driver, and why
 * @returns {{ passed: number, failures: string[], differing: { test: string, why: string }[] }}
 */
export const laneReport = (reports, listed) => {
  const differing = [];
  const others = reports.map((text) => {
    const report = JSON.parse(text);
    const testResults = report.testResults.map((file) => {
      const assertionResults = file.assertionResults.filter(({ fullName, status }) => {
        const entry = listed.find(({ test }) => status === "failed" && fullName.includes(test));
        if (entry) differing.push({ test: fullName, why: entry.why });
        return entry === undefined;
      });
      const removed = assertionResults.length < file.assertionResults.length;
      const isRight = removed && assertionResults.every(({ status }) => status === "passed");
      return { ...file, assertionResults, ...(isRight && { status: "passed" }) };
    });
    return JSON.stringify({ ...report, testResults });
  });
  const { passed, failures } = sumReports(others);
  return { passed, failures, differing };
};
