// Commands that write, ended by SIGKILL at random moments, and on full disks. `npm run torture` does more of it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";

const folderOf = (name: string): string => mkdtempSync(join(tmpdir(), `halfstep-${name}-`));
const directory = folderOf("killed");
const disks = folderOf("full-disk");
afterAll(() => {
  for (const folder of [directory, disks]) rmSync(folder, { recursive: true });
});

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
  const result = await killWriters({ directory, kills: 12, random: numbers() });
  expect(result.lost).toEqual([]);
  expect(result.old + result.new).toBeGreaterThan(0);
});

/** Whether a disk of memory can be mounted: in namespaces of users, or by root. */
const mounts = (): boolean =>
  spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", disks]).status === 0;

it("convert, predict and export leave the old file on disks that are full or become full, and say so", async () => {
  if (!mounts()) {
    console.log("note: no disk can be mounted here, so that none was filled");
    return;
  }
  const program = new URL("../../../scripts/torture/fill-disk.mjs", import.meta.url).href;
  const { fillDisk } = await import(program);
  const { runs, full, problems } = await fillDisk({
    directory: disks,
    rounds: 2,
    random: numbers(),
  });
  expect(problems).toEqual([]);
  expect([runs > 10, full >= runs / 2]).toEqual([true, true]);
});
