// Commands that write, ended by SIGKILL at random moments: `npm run torture -- 200 writers` does more of it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";

const directory = mkdtempSync(join(tmpdir(), "halfstep-killed-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** From 0 to 1, the same in each run. */
function numbers(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

it("convert, predict and export leave the old file or the new one", async () => {
  const program = new URL("../../../scripts/torture/kill-writers.mjs", import.meta.url).href;
  const { killWriters } = await import(program);
  const result = await killWriters({ directory, kills: 24, random: numbers() });
  expect(result.lost).toEqual([]);
  expect(result.old + result.new).toBeGreaterThan(0);
});
