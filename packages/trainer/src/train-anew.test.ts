import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { training } from "../test/class-training.js";
import type { Checkpoint, CheckpointStore } from "./checkpoint/checkpoint.js";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { CheckpointFolder } from "./checkpoint/checkpoint-folder.js";
import { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
import { RunFolder } from "./run-folder.js";
import type { Stateful } from "./stateful.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-anew-"));
afterAll(() => rmSync(root, { recursive: true }));

/** Trains without resuming; the parts tell the runs apart. */
async function run(
  store: CheckpointStore,
  value: number,
  maxSteps: number,
  more: Readonly<Record<string, Stateful>> = {},
): Promise<readonly string[]> {
  const notes: string[] = [];
  const { run, model, optimizer } = training();
  const mark = { stateDict: () => ({ value }), loadStateDict() {} };
  await run({
    maxSteps,
    checkpoints: {
      store,
      parts: { model, optimizer, mark, ...more },
      every: { steps: 2 },
      onNote: (note) => notes.push(note),
    },
  });
  return notes;
}

const runOf = ({ checkpoint }: { readonly checkpoint: Checkpoint | undefined }): unknown => [
  checkpoint?.step,
  checkpoint?.parts.mark,
];

describe("training anew in a store that an earlier run has used", () => {
  it.each([
    ["memory", () => memoryCheckpoints()],
    ["a folder", () => new CheckpointFolder(join(root, "plain"))],
  ])("replaces that run, and says so: %s", async (_, make) => {
    const store = make();
    expect(await run(store, 1, 5)).toEqual([]);
    for (const [value, steps] of [
      [2, 5],
      [3, 3],
      [4, 5],
    ] as const) {
      const { checkpoint } = await store.newest();
      expect(await run(store, value, steps)).toEqual([
        `${checkpoint?.path} is of an earlier run, which this one replaces: resume: "auto" would go on from it, and another store would keep it`,
      ]);
      expect(runOf(await store.newest())).toEqual([steps, { value }]);
    }
  });

  it("says nothing where a run folder removes it, or all of it is damaged", async () => {
    for (const value of [1, 2]) {
      const folder = new RunFolder(join(root, "run"));
      expect(await run(folder.checkpoints, value, 3, { log: folder })).toEqual([]);
      folder.close();
      expect(runOf(await folder.checkpoints.newest())).toEqual([3, { value }]);
    }
    const store = memoryCheckpoints();
    const damaged: CheckpointStore = {
      save: (content) => store.save(content),
      newest: () => Promise.reject(new CheckpointError("not-found", "memory", "has none")),
    };
    expect(await run(damaged, 1, 3)).toEqual([]);
  });
});
