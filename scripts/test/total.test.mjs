import { describe, expect, it } from "vitest";
import { readTotal, sumReports, totalLine } from "./total.mjs";

const report = (...files) =>
  JSON.stringify({
    testResults: files.map(([name, status, ...tests]) => ({
      name,
      status,
      message: "Error: no adapter\n  at x",
      assertionResults: tests.map((test) => ({
        fullName: `t ${test}`,
        status: test,
        failureMessages:
          test === "failed" ? ["\u001b[31mexpected 1\u001b[39m to be 2\n  at y", "later"] : [],
      })),
    })),
  });

describe("sumReports", () => {
  it("sums files and workspaces", () => {
    const one = report(
      ["a.test.ts", "passed", "passed", "passed"],
      ["b.test.ts", "passed", "passed"],
    );
    expect(sumReports([one, one])).toEqual({ passed: 6, failed: 0, failures: [] });
  });

  it("counts failed tests, skipped tests and files that never got to their tests", () => {
    expect(
      sumReports([
        report(
          ["a", "failed", "passed", "failed"],
          ["b", "failed"],
          ["c", "passed", "skipped", "passed"],
        ),
      ]),
    ).toEqual({
      passed: 2,
      failed: 3,
      failures: [
        "a: t failed\n        expected 1 to be 2\n          at y",
        "b:\n        Error: no adapter\n          at x",
        "c: t skipped (skipped)",
      ],
    });
  });
});

describe("readTotal", () => {
  it("reads the last total of a log", () => {
    const log = `3 passed, 1 failed\nx\n${totalLine({ passed: 12, failed: 0 })}\n`;
    expect(readTotal(log)).toEqual({ passed: 12, failed: 0 });
    expect(readTotal(" Tests  3 passed (3)\n")).toBeUndefined();
  });
});
