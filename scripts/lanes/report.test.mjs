import { describe, expect, it } from "vitest";
import { laneReport } from "./report.mjs";

const listed = [{ test: "keeps subnormals", why: "the driver flushes them" }];
const report = (...assertionResults) =>
  JSON.stringify({
    testResults: [
      {
        name: "a.test.ts",
        message: "",
        status: assertionResults.every(({ status }) => status === "passed") ? "passed" : "failed",
        assertionResults,
      },
    ],
  });
const passed = (fullName) => ({ fullName, status: "passed" });
const failed = (fullName) => ({ fullName, status: "failed" });

describe("laneReport", () => {
  it("counts failures that are listed apart", () => {
    const found = laneReport(
      [report(passed("adds"), failed("store keeps subnormals, native"))],
      listed,
    );
    expect(found).toEqual({
      passed: 1,
      failures: [],
      differing: [{ test: "store keeps subnormals, native", why: "the driver flushes them" }],
    });
  });

  it("counts other failures, and listed tests that pass", () => {
    const found = laneReport([report(passed("keeps subnormals"), failed("adds"))], listed);
    expect(found).toEqual({ passed: 1, failures: ["a.test.ts: adds"], differing: [] });
  });
});
