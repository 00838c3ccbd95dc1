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

it("says seconds and minutes", () => {
  expect(cpuLine(846)).toBe("CPU time: 846 s (14.1 minutes)");
  expect(cpuLine(undefined)).toBeUndefined();
});
