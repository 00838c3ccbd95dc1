import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { childSeconds, cpuLine, readChildSeconds } from "./cpu.mjs";

it("reads the time of children behind any name of a program", () => {
  const numbers = Array.from({ length: 50 }, (_, i) => i * 100).join(" ");
  expect(readChildSeconds(`17 (a) b) S ${numbers}`)).toBe(12 + 13);
});

it("counts children that ended, where the system does", () => {
  const work =
    "const until = process.cpuUsage().user + 5e4; while (process.cpuUsage().user < until);";
  const before = childSeconds();
  spawnSync(process.execPath, ["-e", work]);
  if (before === undefined) expect(process.platform).not.toBe("linux");
  else expect(childSeconds()).toBeGreaterThan(before + 0.03);
});

it("prints the ratio to the fixed work before and after", () => {
  expect(cpuLine(1200, [1, 1.4])).toBe(
    "CPU time: 1200 s, 1000 times that of the fixed work (1.00 and 1.40 s)",
  );
  expect(cpuLine(undefined, [1, 1])).toBeUndefined();
});
