import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { CheckpointFolder } from "../checkpoint/checkpoint-folder.js";
import { flagsOf, resumePoint, savedSettings, settingsOf } from "./resume.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-resume-"));
afterAll(() => rmSync(folder, { recursive: true }));

const settings = { lr: 0.1, "batch-size": 32, "static-loss-scale": null };
let made = 0;

/** A store with checkpoints after these steps. */
async function storeWith(...steps: readonly number[]): Promise<CheckpointFolder> {
  const store = new CheckpointFolder(join(folder, `store${++made}`));
  for (const step of steps)
    await store.save({
      ...{ step, microStep: 0, best: false },
      parts: { settings: savedSettings(settings).stateDict() },
    });
  return store;
}

/** Where training goes on, or why not, and what is said. */
async function outcome(
  options: Omit<Parameters<typeof resumePoint>[0], "onNote">,
): Promise<readonly unknown[]> {
  const said: string[] = [];
  const step = await resumePoint({ ...options, onNote: (line) => said.push(line) }).then(
    (checkpoint) => checkpoint?.step,
    (error: Error) => `${error.name}: ${error.message}`,
  );
  return [step, ...said];
}

it("settingsOf names options by their flags", () => {
  const options: {
    readonly lr: number;
    readonly batchSize: number;
    readonly initScale?: number;
    readonly precision: readonly string[];
  } = { lr: 0.1, batchSize: 4, precision: ["float32"] };
  const found = settingsOf(options, ["lr", "batchSize", "initScale"]);
  expect(Object.entries(found)).toEqual([
    ["lr", 0.1],
    ["batch-size", 4],
    ["init-scale", null],
  ]);
  expect(settingsOf(options, ["precision"])).toEqual({ precision: ["float32"] });
});

it("flagsOf keeps numbers, truths, texts and lists of them as they are", () => {
  const options = { batchSize: 4, json: false, precision: ["float16", "float32"], out: "runs" };
  const flags = { "batch-size": 4, json: false, precision: ["float16", "float32"], out: "runs" };
  expect(flagsOf({ ...options, data: {}, limit: undefined, parse: () => {} })).toEqual(flags);
});

describe("resumePoint", () => {
  it("goes on from the newest, and says so", async () => {
    const store = await storeWith(4, 8);
    expect(await outcome({ resume: "auto", store, settings })).toEqual([
      8,
      `going on from ${join(store.directory, "step-00000008")}, after step 8`,
    ]);
  });

  it("goes on from the one that is named", async () => {
    const store = await storeWith(4, 8);
    const resume = join(store.directory, "step-00000004");
    expect(await outcome({ resume, store })).toEqual([4, expect.stringContaining("after step 4")]);
    expect(await outcome({ resume: folder, store })).toEqual([
      expect.stringMatching(/^CheckpointError: /),
    ]);
  });

  it("takes the last store of several, and passes over what is damaged", async () => {
    const stores = [await storeWith(4), await storeWith(2, 6), await storeWith()];
    const damaged = join((stores[1] as CheckpointFolder).directory, "step-00000006/state.json");
    writeFileSync(damaged, "{}");
    expect(await outcome({ resume: "auto", store: stores })).toEqual([
      2,
      expect.stringMatching(/^a checkpoint is passed over: .*step-00000006/),
      expect.stringMatching(/^going on from .*step-00000002, after step 2$/),
    ]);
  });

  it("begins where there is none, and says what a run replaces", async () => {
    const empty = await storeWith();
    expect(await outcome({ resume: "auto", store: empty, out: "runs/x" })).toEqual([
      undefined,
      "runs/x has no checkpoint to go on from: training starts from the beginning",
    ]);
    expect(await outcome({ resume: undefined, store: empty })).toEqual([undefined]);
    expect(await outcome({ resume: undefined, store: await storeWith(3) })).toEqual([
      undefined,
      expect.stringMatching(/step-00000003 is of a run that this one replaces; --resume auto/),
    ]);
  });

  it("takes another spelling of the same path", async () => {
    const store = await storeWith();
    const saved = { directory: `${folder}/` };
    await store.save({
      ...{ step: 1, microStep: 0, best: false },
      parts: { settings: savedSettings(saved).stateDict() },
    });
    const from = (directory: string) => outcome({ resume: "auto", store, settings: { directory } });
    expect((await from(join(folder, "x", "..")))[0]).toBe(1);
    expect(await from(tmpdir())).toEqual([expect.stringContaining("go on with the same flags")]);
  });

  it("refuses one that was saved of other data", async () => {
    const store = await storeWith();
    await store.save({
      ...{ step: 1, microStep: 0, best: false },
      parts: { settings: savedSettings({}).stateDict(), dataFacts: { classes: ["cat", "dog"] } },
    });
    const of = (classes: readonly string[]) =>
      outcome({ resume: "auto", store, settings: {}, dataFacts: { classes } });
    expect((await of(["cat", "dog"]))[0]).toBe(1);
    expect(await of(["aardvark", "cat"])).toEqual([
      expect.stringMatching(
        /was saved with data that has classes cat,dog, not aardvark,cat: restore the data, or train anew without --resume$/,
      ),
    ]);
  });

  it("refuses one that was saved with other flags, or by another program", async () => {
    const store = await storeWith(4);
    const withOthers = (others: object) =>
      outcome({ resume: "auto", store, settings: { ...settings, ...others } });
    expect(await withOthers({ lr: 0.01 })).toEqual([
      expect.stringMatching(/was saved with --lr 0.1, not 0.01: go on with the same flags$/),
    ]);
    expect(await withOthers({ lr: [0.1, "x".repeat(1000)] })).toEqual([
      expect.stringMatching(/was saved with --lr 0.1, not 0.1,x{76}…: go on with the same flags$/),
    ]);
    expect(await withOthers({ "static-loss-scale": 128 })).toEqual([
      expect.stringMatching(/was saved with --static-loss-scale left out, not 128/),
    ]);
    await store.save({ step: 9, microStep: 0, best: false, parts: { model: {} } });
    expect(await outcome({ resume: "auto", store, settings })).toEqual([
      expect.stringMatching(/was not saved by this program$/),
    ]);
  });

  it("lets a run become longer, and says what that does to its schedule; shorter it must not become", async () => {
    const store = new CheckpointFolder(join(folder, "longer"));
    const saved = { epochs: 2, "max-steps": 50, lr: 0.1 };
    const parts = { settings: savedSettings(saved).stateDict() };
    await store.save({ step: 4, microStep: 0, best: false, parts });
    const withLength = (others: object) =>
      outcome({ resume: "auto", store, settings: { ...saved, ...others } });
    expect(await withLength({ epochs: 3, "max-steps": null })).toEqual([
      4,
      expect.stringContaining("after step 4"),
      expect.stringMatching(
        /^longer than it was: --epochs 3 in place of 2, --max-steps left out in place of 50; a learning rate that follows/,
      ),
    ]);
    expect(await withLength({ epochs: 1 })).toEqual([
      expect.stringMatching(
        /was saved with --epochs 2, not 1: go on with the same flags, or a larger one to train longer$/,
      ),
    ]);
  });
});
