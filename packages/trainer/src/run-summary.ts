import type { Device } from "@halfstep/device";
import type { FlatVariables, Variable } from "@halfstep/tensor";
import { parameterSha256 } from "./parameter-hash.js";
import { recipeFor, type TrainingPrecision } from "./precision.js";
import type { RunSummary, TestResult } from "./summary.js";
import type { TrainResult } from "./train.js";

/** Options of a run's summary. */
export interface RunSummaryOptions {
  readonly precision: TrainingPrecision;
  readonly result: TrainResult;
  /** Left out where nothing was tested. */
  readonly test?: TestResult | undefined;
  readonly model: { namedParameters(): Iterable<readonly [name: string, parameter: Variable]> };
  /** The groups of parameters of the optimizer. */
  readonly groups: readonly Pick<FlatVariables, "values" | "gradients" | "dtype">[];
  /** Four-byte numbers of optimizer state for each parameter, without masters: 2 for AdamW, 1 for SGD with momentum. */
  readonly moments: number;
  readonly samplesPerStep: number;
  /** The device's peak after training, before the test. Undefined on the CPU, where it is computed from known sizes. */
  readonly peakBytes: Device["memory"]["peak"] | undefined;
  /** `performance.now()` before the model was made. */
  readonly startedAt: number;
}

/** The summary of a run for `summary.json`. Waits for the parameters. */
export async function runSummary(options: RunSummaryOptions): Promise<RunSummary> {
  const { result, test, model, groups, moments, samplesPerStep } = options;
  const recipe = recipeFor(options.precision);
  const sum = (of: (group: (typeof groups)[number]) => number): number =>
    groups.reduce((total, group) => total + of(group), 0);
  const parameterBytes = sum(({ values }) => values.byteLength);
  // Gradients are float32 for every storage of parameters.
  const gradientBytes = sum(({ gradients }) => gradients.byteLength);
  const masterBytes = sum(({ dtype, gradients }) =>
    dtype !== "float32" && recipe.masterWeights ? gradients.byteLength : 0,
  );
  const optimizerBytes = moments * gradientBytes + masterBytes;
  return {
    precision: recipe.name,
    steps: result.steps,
    appliedSteps: result.appliedSteps,
    skippedSteps: result.skippedSteps,
    finalScale: result.finalScale,
    test: test ?? { loss: Number.NaN },
    ...(test === undefined && { isTested: false }),
    msPerStep: result.msPerStep,
    // 0 where the checkpoint had completed all steps, so that none was timed.
    samplesPerSecond: result.msPerStep === 0 ? 0 : (samplesPerStep * 1000) / result.msPerStep,
    peakBytes:
      options.peakBytes ?? result.stepBytes + parameterBytes + gradientBytes + optimizerBytes,
    activationBytes: result.activationBytes,
    parameterBytes,
    optimizerBytes,
    perStep: result.perStep,
    deviceMsPerStep: result.deviceMsPerStep,
    phases: result.phases,
    hyperparameters: result.hyperparameters,
    parameterSha256: await parameterSha256(model.namedParameters()),
    wallSeconds: (performance.now() - options.startedAt) / 1000,
  };
}
