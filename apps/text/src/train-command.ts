import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { auditRange, type RunSummary, recipeFor, type Summary } from "@halfstep/trainer";
import {
  followTraining,
  openRuntime,
  resumePoint,
  type Settings,
  savedSettings,
} from "@halfstep/trainer/cli";
import { RunFolder, resultsTable, type StopSignals, stopSignals } from "@halfstep/trainer/node";
import { evaluateCommand } from "./evaluate-command.js";
import { folds } from "./examples.js";
import { loadBody, openModel, type SavedModel, saveModel } from "./model-folder.js";
import { type ModelShape, smallShape } from "./model-shape.js";
import type { TrainCommand } from "./options.js";
import { baselinesOf, featuresFor, prepareTask, tokenizerFor } from "./prepare.js";
import { describeBaselines, nats, percent, print, say } from "./say.js";
import { type TaskDefaults, taskDefaults } from "./task-defaults.js";
import { readTask } from "./tasks.js";

/** A command with nothing left to the task. */
type Complete = Omit<TrainCommand, keyof TaskDefaults | "fold"> &
  TaskDefaults & { readonly fold: number };

/** Trains, once or on each fold. */
export async function trainCommand(options: TrainCommand): Promise<number> {
  const { fold, out } = options;
  if (options.staticLossScale !== undefined && recipeFor(options.precision).lossScale === 1)
    say(`--loss_scale is ignored: ${options.precision} needs none; --fp16 does`);
  if (!options.isTraining)
    return evaluateCommand({ ...options, command: "evaluate", model: out, half: false });
  const stop = stopSignals();
  const all = fold === "all" ? Array.from({ length: folds }, (_, i) => i) : [fold];
  const summaries: Summary[] = [];
  for (const each of all) {
    const place = fold === "all" ? join(out, `fold-${each}`) : out;
    const done = fold === "all" && options.resume !== undefined && (await summaryIn(place));
    const summary = done || (await trainFold(completed(options, each, place), stop));
    if (!summary) {
      say(`stopped; --resume auto --out ${out} goes on from here`);
      return stop.exitCode() ?? 1;
    }
    summaries.push(summary);
  }
  const summary = together(summaries);
  if (fold === "all") {
    const folder = new RunFolder(out, { onNote: say });
    await folder.finish(summary).finally(() => folder.close());
  }
  print(options.json ? JSON.stringify(summary, undefined, 2) : tableOf(summary));
  say(`model: ${fold === "all" ? join(out, "fold-*") : out} · report: ${join(out, "report.html")}`);
  return 0;
}

/** A command with the task's own in place of what was not asked for. */
function completed(options: TrainCommand, fold: number, out: string): Complete {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...taskDefaults[options.task], ...Object.fromEntries(given), fold, out } as Complete;
}

/** Trains one model. Undefined if a signal stopped it. */
async function trainFold(options: Complete, stop: StopSignals): Promise<Summary | undefined> {
  const { task, fold, out } = options;
  const data = await readTask(options);
  const init = options.init === undefined ? undefined : await openModel(ofFold(options.init, fold));
  const tokenizer = init?.tokenizer ?? (await tokenizerFor(data, options.leastCount));
  const features =
    task === "tags" && options.wordFeatures
      ? (init?.features ?? featuresFor(data, options.leastFeature))
      : undefined;
  const shape: ModelShape = init
    ? { ...init.shape, ...dropouts(options.dropout) }
    : smallShape({ ...options, vocabulary: tokenizer.vocabulary });
  const maxLength = Math.min(options.maxLength, shape.maxPositionEmbeddings);
  const folder = new RunFolder(out, { onNote: say });
  try {
    const settings = settingsOf(options);
    const checkpoint = await resumePoint({
      resume: options.resume,
      store: folder.checkpoints,
      out,
      settings,
      onNote: say,
    });
    const { runtime, device, described, close } = await openRuntime({ ...options, onNote: say });
    const prepared = prepareTask(runtime, data, tokenizer, {
      ...options,
      ...{ shape, maxLength, features },
    });
    if (init) describeInit(init, loadBody(prepared.model, init), options.precision);
    const baselines = baselinesOf(data, tokenizer, maxLength);
    say(
      `${task}: ${data.splits.train.length} to train on, ${data.splits.test.length} to test · ${tokenizer.vocabulary.length} tokens · ${described.adapter} · writing to ${out}`,
    );
    if (Object.keys(baselines).length > 0) say(`counting: ${describeBaselines(baselines)}`);
    const progress = followTraining({
      label: options.precision,
      epochs: options.epochs,
      steps: prepared.steps(options),
      batchSize: options.batchSize * options.accumulate,
      folder,
    });
    const result = await prepared
      .train({
        ...options,
        runtime,
        device,
        isTested: options.isEvaluating,
        signal: stop.signal,
        hooks: { progress },
        checkpoints: {
          store: folder.checkpoints,
          parts: { log: folder, settings: savedSettings(settings) },
          every: { steps: options.saveEvery },
          resume: checkpoint,
          onNote: say,
        },
      })
      .finally(progress.stop);
    if (result) {
      const { labels } = data;
      const text = { tokenizer, features };
      const purpose = { ...options, labels, maxLength };
      await saveModel(out, prepared.model, shape, text, purpose);
    }
    close();
    if (!result) return undefined;
    const test = { ...result.test, ...baselines };
    const summary: Summary = {
      schema: 1,
      task,
      seed: options.seed,
      device: described,
      runs: [{ ...result, test }],
    };
    await folder.finish(summary);
    return summary;
  } finally {
    folder.close();
  }
}

/** The folder of a fold's model where each fold has its own. */
const ofFold = (directory: string, fold: number): string => {
  const own = join(directory, `fold-${fold}`);
  return existsSync(own) ? own : directory;
};

const dropouts = (
  p: number,
): Pick<ModelShape, "hiddenDropoutProb" | "attentionProbsDropoutProb"> => ({
  hiddenDropoutProb: p,
  attentionProbsDropoutProb: p,
});

function describeInit(
  { directory, shape, state }: SavedModel,
  missing: readonly string[],
  precision: string,
): void {
  say(
    `going on from ${directory}: ${shape.numHiddenLayers} layers of ${shape.hiddenSize} features${missing.length > 0 ? `; new: ${missing.join(", ")}` : ""}`,
  );
  const { compute } = recipeFor(precision);
  if (compute === "float16" || compute === "bfloat16")
    for (const line of auditRange(state, compute).advice) say(line);
}

/** What has to be the same when training goes on, by flag. */
function settingsOf(options: Complete): Settings {
  return {
    task: options.task,
    data: options.data ?? null,
    limit: options.limit ?? null,
    fold: options.fold,
    "mail-part": options.mailPart,
    words: options.words,
    corpus: options.corpus,
    init: options.init ?? null,
    precision: options.precision,
    num_train_epochs: options.epochs,
    "max-steps": options.maxSteps ?? null,
    train_batch_size: options.batchSize,
    gradient_accumulation_steps: options.accumulate,
    learning_rate: options.lr,
    warmup_proportion: options.warmup,
    max_seq_length: options.maxLength,
    "hidden-size": options.hiddenSize,
    layers: options.layers,
    heads: options.heads,
    dropout: options.dropout,
    "least-count": options.leastCount,
    bag: options.bag,
    crf: options.crf,
    "word-features": options.wordFeatures,
    "least-feature": options.leastFeature,
    "label-smoothing": options.labelSmoothing,
    focal: options.focal,
    "layer-decay": options.layerDecay,
    adversarial: options.adversarial,
    seed: options.seed,
    loss_scale: options.staticLossScale ?? 0,
    "init-scale": options.initScale ?? null,
  };
}

/** The summary of a fold that is done. */
async function summaryIn(place: string): Promise<Summary | undefined> {
  const path = join(place, "summary.json");
  return existsSync(path) ? JSON.parse(await readFile(path, "utf8")) : undefined;
}

/** The runs of all folds. */
const together = (summaries: readonly Summary[]): Summary => ({
  ...(summaries[0] as Summary),
  runs: summaries.flatMap(({ runs }) => runs),
});

function tableOf(summary: Summary): string {
  const mean = (of: (run: RunSummary) => number): number =>
    summary.runs.reduce((sum, run) => sum + of(run), 0) / summary.runs.length;
  const { loss: _, accuracy: __, ...baselines } = summary.runs[0]?.test ?? { loss: Number.NaN };
  const lines = [
    `accuracy ${percent(mean(({ test }) => test.accuracy ?? Number.NaN))}`,
    `loss ${nats(mean(({ test }) => test.loss))}`,
    ...Object.keys(baselines).map((name) =>
      describeBaselines({ [name]: mean(({ test }) => test[name] ?? Number.NaN) }),
    ),
  ];
  return `${resultsTable(summary)}\n${lines.join(" · ")}`;
}
