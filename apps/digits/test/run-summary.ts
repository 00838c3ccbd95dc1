import type { RunSummary } from "@halfstep/trainer";
import { expect } from "vitest";

/** The fields of a run in summary.json. */
export const runFields: Readonly<Record<string, unknown>> = {
  precision: expect.stringMatching(/^(float32|float16|bfloat16)$/),
  steps: expect.any(Number),
  appliedSteps: expect.any(Number),
  skippedSteps: expect.any(Number),
  finalScale: expect.any(Number),
  test: { accuracy: expect.any(Number), loss: expect.any(Number) },
  msPerStep: expect.any(Number),
  samplesPerSecond: expect.any(Number),
  peakBytes: expect.any(Number),
  activationBytes: expect.any(Number),
  parameterBytes: expect.any(Number),
  optimizerBytes: expect.any(Number),
  perStep: {
    hostWaits: expect.any(Number),
    submits: expect.any(Number),
    dispatches: expect.any(Number),
    castDispatches: expect.any(Number),
    buffersCreated: expect.any(Number),
    bindGroupsCreated: expect.any(Number),
  },
  phases: {
    data: expect.any(Object),
    record: expect.any(Object),
    submit: expect.any(Object),
    checkpoint: expect.any(Object),
  },
  hyperparameters: {
    optimizer: expect.objectContaining({ algorithm: "AdamW" }),
    lossScale: expect.any(Object),
  },
  parameterSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  wallSeconds: expect.any(Number),
};

/** Without what only devices with timestamps tell, of runs that are long enough. */
export const withoutDeviceTime = ({
  deviceMsPerStep: _,
  ...run
}: RunSummary): Omit<RunSummary, "deviceMsPerStep"> => run;

/** Claims about one run that do not hold. */
export const doubts = (run: RunSummary): string[] => {
  const { accuracy = Number.NaN } = run.test;
  const claims: Readonly<Record<string, boolean>> = {
    "steps are applied or skipped": run.appliedSteps + run.skippedSteps === run.steps,
    "some steps were applied": run.appliedSteps > 0,
    "the final scale is positive": run.finalScale > 0,
    "accuracy is a share": accuracy >= 0 && accuracy <= 1,
    "the loss is positive": run.test.loss > 0,
    "steps take time": run.msPerStep > 0 && run.msPerStep < 60_000,
    "samples/s goes with ms/step": run.samplesPerSecond > 0 && run.samplesPerSecond < 1e6,
    "the peak holds all else":
      run.peakBytes > run.activationBytes + run.parameterBytes + run.optimizerBytes,
    "activations take memory": run.activationBytes > 0,
    "29,178 float32 parameters, and gaps": run.parameterBytes >= 4 * 29_178,
    "two moments a parameter": run.optimizerBytes === 2 * run.parameterBytes,
    "the device takes time where it tells": (run.deviceMsPerStep ?? 1) > 0,
    "steps take wall time": run.wallSeconds > (run.steps * run.msPerStep) / 2000,
  };
  return Object.entries(claims).flatMap(([claim, holds]) => (holds ? [] : [claim]));
};
