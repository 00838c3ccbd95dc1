import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Device } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { gpuRuntime, type Runtime } from "@halfstep/tensor";
import type { RunSummary } from "@halfstep/trainer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mostFrequentClass } from "../src/baseline.js";
import { saveModel } from "../src/model-folder.js";
import { smallShape } from "../src/model-shape.js";
import { predict } from "../src/predict.js";
import { featuresFor, prepareTask, tokenizerFor } from "../src/prepare.js";
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
}, 60_000);

interface Trained {
  readonly data: TaskData;
  readonly run: RunSummary;
  readonly saved: UsableModel;
}

/** Trains a model that is smaller than the app's, on fewer examples, in float16; saves it, and opens what was saved. */
async function trained(
  task: TaskName,
  limit: number,
  changed: Readonly<Record<string, number>>,
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
  const tokenizer = await tokenizerFor(data, defaults.leastCount);
  const shape = smallShape({ ...defaults, vocabulary: tokenizer.vocabulary });
  const features = featuresFor(data, defaults.leastFeature);
  const settings = { ...defaults, features, precision: "float16", seed: 0, crf: true };
  const prepared = prepareTask(runtime, data, tokenizer, { ...settings, shape });
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
  return { data, run: run as RunSummary, saved: await openTrained(directory) };
}

/** What a model says of real test data, in float32 and in halves. */
const saidOf = async ({ data, saved }: Trained, count: number): Promise<[string[], string[]]> => {
  const texts = data.splits.test
    .slice(0, count)
    .map((each) =>
      typeof each === "string" ? each : "text" in each ? each.text : each.words.join(" "),
    );
  const say = async (half: boolean): Promise<string[]> =>
    (await predict({ runtime, device, saved, half }, texts)).map(({ labels }) => labels.join(" "));
  return [await say(false), await say(true)];
};

describe("mails", { timeout: 300_000 }, () => {
  let spam: Trained;
  beforeAll(async () => {
    spam = await trained("spam", 1600, { epochs: 2, batchSize: 16, maxLength: 64 });
  }, 300_000);

  it("are told from spam better than by the class that is most frequent", () => {
    const { data, run } = spam;
    if (data.kind !== "classes") throw new TypeError("mails have classes");
    expect(run.test.accuracy).toBeGreaterThan(mostFrequentClass(data.splits) + 0.05);
    expect(run).toMatchObject({ precision: "float16", steps: 200 });
    expect(run.skippedSteps).toBeLessThan(5);
    expect(run.perStep).toMatchObject({ hostWaits: 0, castDispatches: 0 });
  });

  it("have the same class in halves", async () => {
    const [single, half] = await saidOf(spam, 300);
    expect(new Set(single)).toEqual(new Set(["ham", "spam"]));
    expect(half).toEqual(single);
  });
});

describe("words", { timeout: 300_000 }, () => {
  let tags: Trained;
  beforeAll(async () => {
    tags = await trained("tags", 2000, { epochs: 2, batchSize: 32, maxLength: 96, lr: 3e-3 });
  }, 300_000);

  it("are tagged much better than by the tag that is most frequent of all", () => {
    const { data, run } = tags;
    if (data.kind !== "tags") throw new TypeError("words have tags");
    const words = data.splits.test.flatMap((sentence) => sentence.tags);
    const nouns = words.filter((tag) => data.labels[tag] === "NOUN").length;
    expect(run.test.accuracy).toBeGreaterThan(nouns / words.length + 0.4);
  });

  it("have the same tags in halves", async () => {
    const [single, half] = await saidOf(tags, 60);
    expect(single.join(" ").split(" ").length).toBeGreaterThan(1000);
    expect(half).toEqual(single);
  });
});
