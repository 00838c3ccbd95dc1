import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { testFiles } from "./test-files.mjs";

const kernels = join(dirname(fileURLToPath(import.meta.url)), "../../packages/kernels");

it("finds the tests of a package that use a GPU, and those that are written for lanes", () => {
  const found = testFiles(kernels, { suites: true, lane: ["matrices"] });
  expect(found).toContain("src/softmax.test.ts");
  expect(found).toContain("test/matrices.lane.test.ts");
  // It computes nothing.
  expect(found).not.toContain("test/entries.test.ts");
});
