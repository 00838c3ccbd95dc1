import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Device } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { gpuRuntime, type Runtime } from "@halfstep/tensor";
import type { RunSummary } from "@halfstep/trainer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mostFrequentClass } from "../src/baseline.js";
import { loadBody, saveModel } from "../src/model-folder.js";
import { smallShape } from "../src/model-shape.js";
import { predict } from "../src/predict.js";
import { baselinesOf, featuresFor, prepareTask, tokenizerFor } from "../src/prepare.js";
import { taskDefaults } from "../src/task-defaults.js";
import { readTask, type TaskData, type TaskName, type TaskSource } from "../src/tasks.js";
import { openTrained, type UsableModel } from "../src/use-model.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-text-training-"));
afterAll(() => rmSync(folder, { recursive: true }));

let device: Device;
let runtime: Runtime;
beforeAll(async () => {
  device = await requestTestDevice();
  runtime = gpuRuntime(device);
}, 600_000);

interface Trained {
  readonly data: TaskData;
  readonly run: RunSummary;
  /** What counting reaches on the same data. */
  readonly baselines: Readonly<Record<string, number>>;
  readonly saved: UsableModel;
}

/**
 * Trains a model of fewer examples than the app's, in float16, from scratch or from another model; saves it, and opens what was
 * saved.
 */
async function trained(
  task: TaskName,
  limit: number,
  changed: Readonly<Record<string, number | boolean>>,
  init?: UsableModel,
): Promise<Trained> {
  const source: TaskSource = {
    ...{ task, mailPart: "body", words: 60, corpus: "brown", fold: 0, limit },
  };
  const all = await readTask(source);
  // What is tested with has to be real, and need not be much.
  const data = {
    ...all,
    splits: { ...all.splits, test: all.splits.test.slice(0, 300) },
  } as TaskData;
  const defaults = { ...taskDefaults[task], ...changed };
  const tokenizer = init?.tokenizer ?? (await tokenizerFor(data, defaults.leastCount));
  const shape = init?.shape ?? smallShape({ ...defaults, vocabulary: tokenizer.vocabulary });
  const features = featuresFor(data, defaults.leastFeature);
  const settings = { ...defaults, features, precision: "float16", seed: 0, crf: true };
  const prepared = prepareTask(runtime, data, tokenizer, { ...settings, shape });
  if (init) expect(loadBody(prepared.model, init, data.labels).fresh).toEqual(newInClassifier);
  const run = await prepared.train({
    ...settings,
    ...{ runtime, device, accumulate: 1, warmup: 0.1, layerDecay: 1, adversarial: 0 },
  });
  const directory = join(folder, task);
  const { labels } = data;
  await saveModel(
    directory,
    prepared.model,
    shape,
    { tokenizer, features },
    { ...source, ...settings, labels },
  );
  const baselines = baselinesOf(data, tokenizer, defaults.maxLength);
  return { data, run: run as RunSummary, baselines, saved: await openTrained(directory) };
}

/** What a model of hidden words does not have. */
const newInClassifier = [
  "bert.pooler.dense.weight",
  "bert.pooler.dense.bias",
  "classifier.weight",
  "classifier.bias",
  "bag.weight",
];

/** What a model says of real test data in float32, and in halves. */
const saidOf = async (
  { data, saved }: Trained,
  count: number,
): Promise<{ readonly single: string[]; readonly half: string[]; readonly close: number }> => {
  const texts = data.splits.test
    .slice(0, count)
    .map((each) =>
      typeof each === "string" ? each : "text" in each ? each.text : each.words.join(" "),
    );
  const [single, half] = [
    await predict({ runtime, device, saved, half: false }, texts),
    await predict({ runtime, device, saved, half: true }, texts),
  ];
  const [labels, again] = [single, half].map((said) => said.map((each) => each.labels.join(" ")));
  return {
    ...{ single: labels as string[], half: again as string[] },
    close: half.filter(({ close }) => close).length,
  };
};

describe("mails", { timeout: 300_000 }, () => {
  let spam: Trained;
  beforeAll(async () => {
    spam = await trained("spam", 1000, { epochs: 1, batchSize: 16, maxLength: 64 });
  }, 300_000);

  it("are told from spam better than by the class that is most frequent", () => {
    const { data, run } = spam;
    if (data.kind !== "classes") throw new TypeError("mails have classes");
    expect(run.test.accuracy).toBeGreaterThan(mostFrequentClass(data.splits) + 0.05);
    expect(run).toMatchObject({ precision: "float16", steps: 63 });
    expect(run.skippedSteps).toBeLessThan(5);
    expect(run.perStep).toMatchObject({ hostWaits: 0, castDispatches: 0 });
  });

  it("have the same class in halves", async () => {
    const { single, half, close } = await saidOf(spam, 150);
    expect(new Set(single)).toEqual(new Set(["ham", "spam"]));
    expect(half).toEqual(single);
    expect(close).toBeLessThan(30);
  });
});

describe("words", { timeout: 300_000 }, () => {
  let tags: Trained;
  beforeAll(async () => {
    tags = await trained("tags", 1600, { batchSize: 16, maxLength: 96, leastFeature: 10 });
  }, 300_000);

  it("are tagged better than by the tag that each has most often", () => {
    const { run, baselines } = tags;
    expect(baselines.mostFrequentTag).toBeGreaterThan(0.8);
    expect(run.test.accuracy).toBeGreaterThan(baselines.mostFrequentTag as number);
  });

  it("have the same tags in halves, where few sentences are close", async () => {
    const { single, half, close } = await saidOf(tags, 150);
    expect(single.join(" ").split(" ").length).toBeGreaterThan(2500);
    expect(half).toEqual(single);
    expect(close).toBeGreaterThan(0);
    expect(close).toBeLessThan(100);
  });
});

describe("hidden words", { timeout: 300_000 }, () => {
  let hidden: Trained;
  beforeAll(async () => {
    const changed = { epochs: 1, batchSize: 32, maxLength: 24, leastCount: 40 };
    hidden = await trained("mlm", 3500, changed);
  }, 300_000);

  it("are told better than by how often they occur, by a model that is trained no longer than this", () => {
    const { run, baselines, saved } = hidden;
    expect(run.skippedSteps).toBeLessThan(5);
    // Batches have different numbers of hidden words, and few shapes all the same.
    expect(run.perStep.bindGroupsCreated).toBeLessThan(20);
    expect(baselines.unigramLoss).toBeLessThan(Math.log(saved.shape.vocabSize) - 1.5);
    expect(run.test.loss).toBeLessThan((baselines.unigramLoss as number) - 0.1);
  });

  it("prepare a model to classify: what it has learnt of words goes on to a new head", async () => {
    const changed = { epochs: 1, batchSize: 16, maxLength: 24 };
    const { data, run } = await trained("sentences", 1200, changed, hidden.saved);
    if (data.kind !== "classes") throw new TypeError("sentences have classes");
    expect(run.test.accuracy).toBeGreaterThan(mostFrequentClass(data.splits) + 0.15);
  });
});
