import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { bundleProcess } from "./bundle.js";

// In a process of its own: with the heap of other tests, garbage collection may take too long.
test("the memory of optimizers and runtimes that are gone, and of what they trained, is given back", async () => {
  const program = await bundleProcess("unreachable-state-process");
  const ended = spawnSync(process.execPath, ["--expose-gc", program], { encoding: "utf8" });
  expect(ended, ended.stderr).toMatchObject({ status: 0 });
  const { length, optimizers, runtimes } = JSON.parse(ended.stdout);
  for (const { one, all, left, results } of [optimizers, runtimes]) {
    // Parameters, gradients and two moments each.
    expect(all - one).toBeGreaterThan(8 * 3 * 4 * length * 0.5);
    // The engine may hold on to the latest for a while, but not to all.
    expect(left - one).toBeLessThan((all - one) / 3);
    expect(new Set(results).size).toBe(1);
  }
});
