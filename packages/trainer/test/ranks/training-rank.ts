// One rank of a training, to be killed: node training-rank.js SETTINGS
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { permutation, type Share, shareOf } from "@halfstep/data";
import { GradScaler } from "@halfstep/grad-scaler";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, dropout, flatten, Generator } from "@halfstep/tensor";
import { openRun } from "../../src/cli/open-run.js";
import { program } from "../../src/cli/program.js";
import { jobExchange } from "../../src/job-exchange.js";
import { withParts } from "../../src/run-context.js";
import { runSummary } from "../../src/run-summary.js";
import { savedGenerator } from "../../src/stateful.js";
import { train } from "../../src/train.js";
import { classifier, samples } from "../classes.js";
import { type RankSettings, type StepSamples, sampleCount } from "./rank-settings.js";

interface Batch {
  readonly step: number;
  readonly places: readonly number[];
  readonly share: Omit<Share<readonly number[]>, "samples">;
}

const settings: RankSettings = JSON.parse(process.argv[2] ?? "{}");
const { out, notes, batchSize, epochs, resume, deadline } = settings;

await program(async () => {
  const startedAt = performance.now();
  using run = await openRun({
    ...{ task: "ranks", settings: { epochs }, seed: 1, out, saveEvery: 3 },
    ...(resume !== undefined && { resume }),
    ...(deadline !== undefined && { deadline }),
    ...{ device: "cpu", json: true, distributed: true },
  });
  const { job, runtime } = run;
  mkdirSync(notes, { recursive: true });
  writeFileSync(join(notes, `process-${job.rank}`), `${process.pid}`);
  const model = classifier(runtime);
  const generator = new Generator(7);
  const params = flatten(model.parameters());
  const perBatch = batchSize * job.ranks;
  const perEpoch = Math.ceil(sampleCount / perBatch);
  const context = run.follow({
    ...{ label: "float32", epochs, steps: epochs * perEpoch, batchSize: perBatch },
  });
  const exchange = await jobExchange(job, {
    ...{ runtime, signal: context.signal, wire: "float16", lastStep: epochs * perEpoch },
    ...{ parameters: model.parameters(), generator },
  });
  const optimizer = new AdamW(runtime.target, exchange.shard([{ params }]), { lr: 0.01 });
  const all = samples(sampleCount, 0);
  const batches = (epoch: number): Batch[] =>
    Array.from({ length: perEpoch }, (_, i) => {
      const order = permutation(sampleCount, 1, epoch).subarray(i * perBatch, (i + 1) * perBatch);
      const { samples: places, ...share } = shareOf([...order], job.rank, job.size);
      return { step: epoch * perEpoch + i + 1, places, share };
    });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...{ initScale: 2 ** 12, growthInterval: 5, outcomeSchedule: false },
  });
  const result = await train<Batch>({
    ...{ runtime, precision: "float32", optimizer, scaler, epochs, batches, lr: () => 0.01 },
    loss({ step, places, share }) {
      const noted: StepSamples = { step, samples: share.weight > 0 ? places : [] };
      appendFileSync(join(notes, `samples-${job.rank}`), `${JSON.stringify(noted)}\n`);
      exchange.begin(share);
      const features = Float32Array.from(
        places.flatMap((place) => [...all.features.subarray(place * 6, (place + 1) * 6)]),
      );
      const x = runtime.tensor(features, [places.length, 6]);
      const labels = Uint32Array.from(places, (place) => all.labels[place] as number);
      const logits = model.forward(dropout(x, { p: 0.1, generator }));
      return crossEntropy(logits, runtime.tensor(labels));
    },
    reduce: (micro) =>
      exchange.reduce?.(optimizer, {
        weight: micro.reduce((sum, { share }) => sum + share.weight, 0),
        scaler,
      }),
    signal: exchange.signal,
    hooks: { ...exchange.hooks, ...context.hooks },
    checkpoints: withParts(context.checkpoints, {
      ...{ model, optimizer, dropout: savedGenerator(generator) },
    }),
  });
  if (result.isAborted) return run.finish(undefined);
  return run.finish(
    await runSummary({
      ...{ precision: "float32", result, model, groups: [params], moments: 2, startedAt },
      ...{ samplesPerStep: perBatch, peakBytes: undefined, test: { loss: 0 } },
    }),
  );
});
