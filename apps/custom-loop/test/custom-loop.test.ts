import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runApp } from "@halfstep/vitest/run-app";
import { expect, test } from "vitest";

const fromRoot = (path: string): string =>
  fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const source = readFileSync(fromRoot("apps/custom-loop/src/main.ts"), "utf8");

test("the loop has at most sixty lines, and no null", () => {
  expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(60);
  expect(source).not.toContain("null");
});

const shownBy = (path: string): string => {
  const [, shown] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(fromRoot(path), "utf8")) ?? [];
  if (shown === undefined) throw new Error(`${path} has no block of TypeScript`);
  return shown;
};

test("its README shows the loop as it is", () => {
  expect(shownBy("apps/custom-loop/README.md")).toBe(source);
});

test("the README of the repository shows parts of the loop as they are", () => {
  const unindented = (code: string): string => code.replace(/^ +/gm, "");
  for (const part of shownBy("README.md").split("\n\n"))
    expect(unindented(source)).toContain(unindented(part));
});

test("what is no number of steps is refused in a line", { timeout: 600_000 }, async () => {
  for (const steps of ["20x", "--help", "0", "-5", "1.5"])
    expect(await runApp("custom-loop", [steps])).toMatchObject({
      ...{ code: 2, stdout: "" },
      stderr: `error: STEPS is ${steps}: give a whole number from 1 on\n`,
    });
});

test("forty steps learn the digits", { timeout: 600_000 }, async () => {
  const { code, stdout } = await runApp("custom-loop", ["40"]);
  expect(code).toBe(0);
  const losses = [...stdout.matchAll(/^step (\d+) {2}loss ([\d.]+)$/gm)];
  expect(losses.map(([, step]) => step)).toEqual(["20", "40"]);
  const [first = 0, last = 0] = losses.map(([, , loss]) => Number(loss));
  expect(first).toBeLessThan(2.3);
  expect(last).toBeLessThan(first);

  const [, accuracy, scale] = /^accuracy ([\d.]+) % {2}scale (\d+)$/m.exec(stdout) ?? [];
  expect(Number(accuracy)).toBeGreaterThan(90);
  expect(Number(scale)).toBeGreaterThanOrEqual(1024);
});
