import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Mlp } from "@halfstep/models";
import { cpuRuntime } from "@halfstep/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { CheckpointFolder } from "./checkpoint-folder.js";
import { checkpointIn } from "./checkpoint-in.js";
import { loadModel } from "./load-model.js";

const parent = mkdtempSync(join(tmpdir(), "halfstep-checkpoint-in-"));
afterAll(() => rmSync(parent, { recursive: true }));

const mlp = (width: number, seed: number): Mlp =>
  new Mlp(cpuRuntime(), { sizes: [2, width, 2], seed });

/** A run folder with checkpoints after these steps. */
async function runWith(name: string, ...saved: readonly { step: number; best: boolean }[]) {
  const directory = join(parent, name);
  const model = await mlp(3, 1).stateDict();
  for (const place of saved)
    await new CheckpointFolder(join(directory, "checkpoints")).save({
      ...{ ...place, microStep: 0 },
      parts: { model },
    });
  return directory;
}

const damage = (run: string, step: number): void =>
  writeFileSync(join(run, `checkpoints/step-0000000${step}/state.json`), "{}");

/** Which step, or what is said. */
const found = (directory: string): Promise<unknown> =>
  checkpointIn(directory).then(
    ({ step }) => step,
    (error: Error) => `${error.name}: ${error.message.replace(parent, "…")}`,
  );

describe("checkpointIn", () => {
  it("finds the best of a run, else the newest that is whole, and takes a checkpoint itself", async () => {
    const best = await runWith("best", { step: 2, best: true }, { step: 4, best: false });
    const newest = await runWith("newest", { step: 2, best: false }, { step: 4, best: false });
    expect([await found(best), await found(newest)]).toEqual([2, 4]);
    expect(await found(join(best, "checkpoints/step-00000004"))).toBe(4);
    damage(newest, 4);
    expect(await found(newest)).toBe(2);
  });

  it("says in one line what is wrong and what to do", async () => {
    const remedy = "train first, or name the folder of a run or of a checkpoint";
    mkdirSync(join(parent, "empty"));
    const broken = await runWith("broken", { step: 2, best: false }, { step: 4, best: false });
    for (const step of [2, 4]) damage(broken, step);
    const bestIsBroken = await runWith("bestIsBroken", { step: 2, best: true });
    damage(bestIsBroken, 2);
    writeFileSync(join(parent, "file"), "");
    const said = await Promise.all(
      ["nowhere", "empty", "broken", "bestIsBroken", "file"].map((name) =>
        found(join(parent, name)),
      ),
    );
    expect(said).toEqual([
      `CheckpointError: …/nowhere is not there: ${remedy}`,
      `CheckpointError: …/empty has no checkpoint: ${remedy}`,
      expect.stringMatching(
        /^CheckpointError: …\/broken\/checkpoints has 2 checkpoints and none that is whole .*: restore one/,
      ),
      expect.stringMatching(
        /^CheckpointError: …\/bestIsBroken\/checkpoints\/step-00000002\/state.json has 2 bytes, and \d+ were saved: /,
      ),
      expect.stringMatching(/^CheckpointError: …\/file is a file: /),
    ]);
    expect(said.filter((line) => String(line).includes("\n"))).toEqual([]);
  });
});

describe("loadModel", () => {
  it("gives a model the parameters of a checkpoint, or says that they are of another one", async () => {
    const run = await runWith("models", { step: 2, best: false });
    const checkpoint = await checkpointIn(run);
    const [loaded, same] = [loadModel(mlp(3, 7), checkpoint), mlp(3, 1)];
    expect(await loaded.stateDict()).toEqual(await same.stateDict());
    expect(() => loadModel(mlp(4, 1), checkpoint)).toThrow(/step-00000002 has another model: /);
    const { parts: _, ...others } = checkpoint;
    expect(() => loadModel(mlp(3, 1), { ...others, parts: {} })).toThrow(
      /step-00000002 has no model: it was saved by another program/,
    );
  });
});
