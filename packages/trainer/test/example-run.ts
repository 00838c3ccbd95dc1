import type { Precision, RunSummary, StepMetrics, Summary } from "../src/summary.js";

/** Three runs of 469 steps as digits gives them; the float16 run meets an overflow at steps 1, 2 and 300. */
export const exampleMetrics = (steps = 469): StepMetrics[] =>
  (["float32", "float16", "bfloat16"] as const).flatMap((precision, run) => {
    let scale = precision === "float16" ? 65536 * 4 : 1;
    return Array.from({ length: steps }, (_, index): StepMetrics => {
      const step = index + 1;
      const applied = precision !== "float16" || ![1, 2, 300].includes(step);
      const used = scale;
      if (!applied) scale /= 2;
      const noise = 1 + 0.5 * Math.sin(step * 12.9898 + run * 78.233);
      const loss = applied ? noise * (2.3 * Math.exp(-step / 40) + 0.05) : null;
      return { precision, step, epoch: 1, loss, applied, scale: used, lr: 0.01 };
    });
  });

const run = (precision: Precision, half: number, change: Partial<RunSummary>): RunSummary => ({
  precision,
  steps: 469,
  appliedSteps: 469,
  skippedSteps: 0,
  finalScale: 1,
  test: { accuracy: 0.9912, loss: 0.0271 },
  msPerStep: 210.4,
  samplesPerSecond: 608.4,
  peakBytes: 98.4 * 2 ** 20 * half,
  activationBytes: 61.2 * 2 ** 20 * half,
  parameterBytes: 240_000,
  optimizerBytes: 480_000,
  perStep: {
    hostWaits: 0,
    submits: 1,
    dispatches: 61,
    castDispatches: 0,
    buffersCreated: 0,
    bindGroupsCreated: 0,
  },
  parameterSha256: "0".repeat(64),
  wallSeconds: 101,
  ...change,
});

/** The summary that goes with `exampleMetrics`. */
export const exampleSummary: Summary = {
  schema: 1,
  task: "digits",
  seed: 1,
  device: { kind: "gpu", adapter: "llvmpipe (LLVM 15.0.6, 256 bits)", tier: "native" },
  runs: [
    run("float32", 1, {}),
    run("float16", 0.52, {
      appliedSteps: 466,
      skippedSteps: 3,
      finalScale: 32768,
      msPerStep: 162.3,
      optimizerBytes: 720_000,
      test: { accuracy: 0.99, loss: 0.0275 },
    }),
    run("bfloat16", 0.52, { msPerStep: 165, optimizerBytes: 720_000 }),
  ],
};
