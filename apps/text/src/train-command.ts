import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { balancedPositives, noteRange, recipeFor, scalerOptionsFor } from "@halfstep/trainer";
import { classWeightsOf, openRun, type Settings, say, UsageError } from "@halfstep/trainer/cli";
import { classSections } from "@halfstep/trainer/report";
import type { TrainCommand } from "./commands.js";
import { modelOfFold, trainFolds } from "./cross-validation.js";
import { describeData, requireSplits } from "./describe-data.js";
import { evaluateCommand } from "./evaluate-command.js";
import { describeBaselines, describeTests, lossUnitOf } from "./figures.js";
import { labelCounts } from "./label-counts.js";
import {
  type LoadedBody,
  loadBody,
  openModel,
  type SavedModel,
  saveModel,
} from "./model-folder.js";
import { type ModelShape, smallShape } from "./model-shape.js";
import { writeAdapter } from "./peft.js";
import { baselinesOf, featuresFor, prepareTask, tokenizerFor } from "./prepare.js";
import { describeSamples, samplesOf } from "./samples.js";
import { runOptionsOf } from "./settings.js";
import { type TaskCommand, withTaskDefaults } from "./task-defaults.js";
import { readTask, type TaskData } from "./tasks.js";
import type { BertTokenizer } from "./tokenizer.js";
import { samplesPerStep } from "./train.js";
import { openTrained } from "./use-model.js";
import type { WordFeatures } from "./word-features.js";

/** Trains and tests a model, one on each fold, or tests the model that is there. */
export async function trainCommand(options: TrainCommand): Promise<number> {
  const { fold, precision, out: model } = options;
  const { staticLossScale } = options;
  if (
    staticLossScale !== undefined &&
    scalerOptionsFor(recipeFor(precision), { staticLossScale }).enabled === false
  )
    say(`--loss_scale is ignored: ${precision} needs none; --fp16 does`);
  const { testData = options.data } = options;
  if (!options.isTraining)
    return evaluateCommand({
      ...{ ...options, command: "evaluate", model, half: false },
      ...(testData !== undefined && { data: testData }),
    });
  return fold === "all"
    ? trainFolds(options, (one) => trainModel(one, false))
    : trainModel(withTaskDefaults({ ...options, fold }), true);
}

/** Of a conditional random field. */
const mostTags = 512;

/** Trains one model, from its data to its results. */
async function trainModel(options: TaskCommand, isShown: boolean): Promise<number> {
  const { task, out } = options;
  const data = await readTask(options);
  requireSplits(data, options.data ?? task);
  if (data.kind === "tags" && options.crf && data.labels.length > mostTags)
    throw new UsageError(
      `${options.data} has ${data.labels.length} tags, and tags that are scored together may be ${mostTags}: add --no-crf`,
    );
  const { init, tokenizer, features, shape } = await startingPoint(options, data);
  if (init && existsSync(out) && realpathSync(out) === realpathSync(init.directory))
    throw new UsageError(
      `--out ${out} has the model of --pretrained, which training would replace: name another folder`,
    );
  const maxLength = Math.min(options.maxLength, shape.maxPositionEmbeddings);
  using run = await openRun({ ...runOptionsOf(options), dataFacts: factsOf(data, tokenizer) });
  const { job } = run;
  if (!isShown && job.size > 1)
    throw new UsageError(
      "--fold all trains a model on each fold, and a job trains one: start one for each of --fold 0 to 4",
    );
  const counts = labelCounts(data);
  const weights = await classWeightsOf(
    options,
    { labels: data.labels, counts },
    data.kind === "labels"
      ? (positives) => balancedPositives(positives, data.splits.train.length)
      : undefined,
  );
  const settings = { ...options, shape, maxLength, features, weights };
  const prepared = prepareTask(run.runtime, data, tokenizer, settings);
  const body = init && loadBody(prepared.model, init, data.labels);
  if (init && body) describeInit(init, body, options.precision);
  const baselines = baselinesOf(data, tokenizer, maxLength);
  say(
    `${task}: ${data.splits.train.length} to train on, ${data.splits.test.length} to test · ${tokenizer.vocabulary.length} tokens · ${run.described.adapter} · writing to ${out}`,
  );
  for (const line of describeData(data)) say(line);
  if (Object.keys(baselines).length > 0) say(`counting: ${describeBaselines(baselines)}`);
  const context = run.follow({
    ...{
      label: options.precision,
      epochs: options.epochs,
      steps: prepared.steps({ ...options, job }),
    },
    batchSize: samplesPerStep({ ...options, job }),
  });
  const isTested = options.isEvaluating;
  const purpose = {
    ...{ ...options, labels: data.labels, maxLength },
    pairs: options.textPairColumn !== undefined,
    ownData: options.data !== undefined,
  };
  const metrics = prepared.newMetrics();
  const result = await prepared.train({
    ...{ ...options, ...context, isTested, metrics, fresh: body?.fresh },
    ...(job.rank === 0 && {
      onAdapters: (lora) => writeAdapter(join(out, "adapter"), lora, purpose, options.pretrained),
    }),
  });
  if (!result) return run.finish(undefined, { isShown });
  // Rank 0 writes for all.
  if (job.rank > 0) return run.finish(result);
  await saveModel(out, prepared.model, shape, { tokenizer, features }, purpose);
  const summary = { ...result, ...(isTested && { test: { ...result.test, ...baselines } }) };
  const { runtime, device } = run;
  const saved = await openTrained(out);
  const samples = await samplesOf({ runtime, device, saved, half: false }, data);
  const tests = isTested ? describeTests([summary]) : "not tested: --do_eval does";
  const lines = [tests, ...describeSamples(samples)].join("\n");
  const note = `model: ${out}`;
  const sections = metrics && isTested ? classSections(metrics.counts) : [];
  return run.finish(summary, { ...lossUnitOf(options), isShown, lines, samples, sections, note });
}

/** What the numbers of a model mean, for a run that is resumed. */
const factsOf = ({ labels, splits }: TaskData, { vocabulary }: BertTokenizer): Settings => ({
  labels,
  "examples to train on": splits.train.length,
  "the vocabulary with hash": createHash("sha256")
    .update(JSON.stringify(vocabulary))
    .digest("hex")
    .slice(0, 12),
});

/** The parts of a model, and the model from which training continues. */
interface StartingPoint {
  readonly init: SavedModel | undefined;
  readonly tokenizer: BertTokenizer;
  readonly features: WordFeatures | undefined;
  readonly shape: ModelShape;
}

async function startingPoint(options: TaskCommand, data: TaskData): Promise<StartingPoint> {
  const { fold, dropout } = options;
  const init =
    options.pretrained === undefined
      ? undefined
      : await openModel(modelOfFold(options.pretrained, fold), options);
  const tokenizer = init?.tokenizer ?? (await tokenizerFor(data, options.leastCount));
  const features =
    data.kind === "tags" && options.wordFeatures
      ? (init?.features ?? featuresFor(data, options.leastFeature))
      : undefined;
  const shape = init
    ? { ...init.shape, hiddenDropoutProb: dropout, attentionProbsDropoutProb: dropout }
    : smallShape({ ...options, vocabulary: tokenizer.vocabulary });
  return { init, tokenizer, features, shape };
}

function describeInit(
  { directory, shape, purpose, state }: SavedModel,
  { fresh, isHeadDropped }: LoadedBody,
  precision: string,
): void {
  const labels = purpose?.labels.length ?? 0;
  const parts = [
    `weights of ${directory}: ${shape.numHiddenLayers} layers of ${shape.hiddenSize} features`,
    ...(isHeadDropped
      ? [
          `dropped: its head, which is for ${labels > 0 ? `${labels} other labels` : "another task"}`,
        ]
      : []),
    ...(fresh.length > 0 ? [`new: ${fresh.join(", ")}`] : []),
  ];
  say(parts.join("; "));
  noteRange(state, recipeFor(precision), say);
}
