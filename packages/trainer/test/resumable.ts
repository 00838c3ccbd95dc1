import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW, clipGradNorm, ExponentialMovingAverage, oneCycle } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  dropout,
  flatten,
  Generator,
  type Runtime,
} from "@halfstep/tensor";
import { evaluateEvery } from "../src/hooks.js";
import type { RunFolder } from "../src/run-folder.js";
import { savedGenerator } from "../src/stateful.js";
import { type TrainOptions, type TrainResult, train } from "../src/train.js";
import type { TrainingCheckpoints } from "../src/training-state.js";
import { classCount, classifier, type Samples, sampleBatches } from "./classes.js";

export interface Resumable {
  readonly runtime: Runtime;
  readonly folder: RunFolder;
  /** Of the model. */
  readonly seed?: number | undefined;
  /** Of the optimizer. */
  readonly weightDecay?: number;
  readonly resume?: TrainingCheckpoints["resume"];
  readonly every?: TrainingCheckpoints["every"];
  /** See `TrainingCheckpoints`. */
  readonly tables?: string;
  readonly onNote?: (line: string) => void;
  /** Called with the number of each micro-step of this call, from 1, before it is recorded. */
  readonly onMicroStep?: (count: number) => void;
  readonly options?: Partial<TrainOptions<Samples>>;
}

export const epochs = 3;
/** Of which two make a step, and the last of an epoch one. */
export const batchesPerEpoch = 5;

/**
 * A training with everything that has a state: masters and moments, a scale that begins so high that steps are skipped and grows
 * again, dropout, an average, a schedule, accumulation with a shorter last window, evaluation, a log.
 */
export async function trainResumable({
  runtime,
  folder,
  seed,
  weightDecay = 0.01,
  resume,
  every,
  tables,
  onNote,
  onMicroStep,
  options,
}: Resumable): Promise<TrainResult> {
  const model = classifier(runtime, seed);
  model.half();
  const lr = oneCycle({ maxLr: 0.02, totalSteps: 3 * epochs });
  // By a decay of 0.99 the table of bias corrections has a tenth of the rows: some tests open hundreds of trainings.
  const betas = [0.9, 0.99] as const;
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), {
    ...{ lr, betas, weightDecay },
  });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    initScale: 2 ** 21,
    growthInterval: 3,
    outcomeSchedule: false,
  });
  const ema = new ExponentialMovingAverage(optimizer, { decay: 0.9, warmUp: true });
  const generator = new Generator(7);
  let microSteps = 0;
  return train<Samples>({
    runtime,
    precision: "O2",
    optimizer,
    scaler,
    epochs,
    lr,
    accumulate: 2,
    clip: () => clipGradNorm(optimizer, 1),
    batches: (epoch) => sampleBatches(batchesPerEpoch, 16, epoch),
    batchesFrom: async function* (epoch, first) {
      yield* sampleBatches(batchesPerEpoch, 16, epoch).slice(first);
    },
    loss: ({ features, labels }) => {
      onMicroStep?.(++microSteps);
      const noisy = dropout(runtime.tensor(features, [labels.length, 6]), { p: 0.2, generator });
      const logits = model.forward(noisy.to("float16")).to("float32");
      return crossEntropy(logits, runtime.tensor(labels));
    },
    onStep: (metrics) => folder.record(metrics),
    hooks: {
      log: { onEvaluation: (metrics) => folder.record(metrics) },
      ema: { record: () => ema.update() },
      evaluation: evaluateEvery({
        every: { epochs: 1 },
        evaluate: async () => {
          const values = await ema.during(() => model.layers[0]?.weight.toArray());
          return { loss: Math.abs(values?.[classCount] ?? 0) };
        },
      }),
    },
    checkpoints: {
      store: folder.checkpoints,
      parts: { model, optimizer, ema, dropout: savedGenerator(generator), log: folder },
      ...{ every, resume, tables, onNote },
    },
    ...options,
  });
}

/** What a run has left behind: its log, and the hash of every file of its last checkpoint. */
export function leftBehind(directory: string): Readonly<Record<string, string>> {
  const checkpoints = join(directory, "checkpoints");
  const last = readdirSync(checkpoints).sort().at(-1) ?? "";
  const files = readdirSync(join(checkpoints, last)).map((name) => [
    `${last}/${name}`,
    createHash("sha256")
      .update(readFileSync(join(checkpoints, last, name)))
      .digest("hex"),
  ]);
  return {
    ...Object.fromEntries(files),
    log: readFileSync(join(directory, "metrics.jsonl"), "utf8"),
  };
}
