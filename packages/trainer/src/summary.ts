/** torch.amp's precisions: recipes by name that cast op by op. */
export type Precision = "float32" | "float16" | "bfloat16";

/** One line of `metrics.jsonl`: one optimizer step. */
export interface StepMetrics {
  /** Name of the recipe. */
  readonly precision: string;
  /** Counts from 1, over all epochs; skipped steps count. */
  readonly step: number;
  /** Counts from 1. */
  readonly epoch: number;
  /** Mean over the batch, unscaled. Null where it was not finite: JSON has no NaN. */
  readonly loss: number | null;
  /** False when the scaler skipped the step. */
  readonly applied: boolean;
  /** The loss scale that this step was run with; 1 without scaling. */
  readonly scale: number;
  readonly lr: number;
}

/** A line of `metrics.jsonl` for an evaluation. Lines of steps have no `kind`. */
export interface EvaluationMetrics {
  readonly kind: "evaluation";
  /** Name of the recipe. */
  readonly precision: string;
  /** Number of steps before it. */
  readonly step: number;
  /** Epoch of the last of these steps; counts from 1. */
  readonly epoch: number;
  /** Whether it is the best so far. */
  readonly best: boolean;
  /** Values by name: loss, accuracy, … Null where one was not finite. */
  readonly values: Readonly<Record<string, number | null>>;
}

/** A line of `metrics.jsonl`. */
export type MetricsLine = StepMetrics | EvaluationMetrics;

/** Whether a line is that of an evaluation. */
export const isEvaluation = (line: MetricsLine): line is EvaluationMetrics => "kind" in line;

/** The device that a run used. */
export interface RunDevice {
  readonly kind: "gpu" | "cpu";
  /** The adapter's own description. */
  readonly adapter: string;
  readonly tier: "subgroup matrix" | "native" | "packed" | "cpu";
}

/** The cost of one training step besides arithmetic, counted in steady state. */
export interface StepCounters {
  readonly hostWaits: number;
  readonly submits: number;
  readonly dispatches: number;
  /** Dispatches that only convert between formats. */
  readonly castDispatches: number;
  readonly buffersCreated: number;
  readonly bindGroupsCreated: number;
}

/**
 * A phase of training: getting batches; recording a step; planning, encoding and submitting it, including waits where the host is
 * too far ahead of the device; asynchronous hooks, mainly evaluations; saving checkpoints.
 */
export type PhaseName = "data" | "record" | "submit" | "evaluation" | "checkpoint";

/** The cost of a phase. */
export interface PhaseCost {
  /** Total time on the host's clock. */
  readonly milliseconds: number;
  readonly times: number;
  /** The largest observed pooled memory of the device in this phase; 0 on the CPU. */
  readonly peakBytes: number;
}

/** The costs of the phases that occurred. */
export type PhaseCosts = { readonly [Phase in PhaseName]?: PhaseCost };

/** The result of a test: the mean loss, and metrics by name. `accuracy` is from 0 to 1. */
export interface TestResult {
  readonly loss: number;
  readonly [metric: string]: number;
}

/** A number, a boolean, a string, or a list of these. Null for a flag that was left out or an infinite limit. */
export type SettingValue = PlainValue | readonly PlainValue[];

type PlainValue = string | number | boolean | null;

/** Values by name, as in `summary.json`: flags of a program without their dashes, options of an optimizer. */
export type Settings = Readonly<Record<string, SettingValue>>;

/** The options of an optimizer and a loss scaler; without loss scaling the latter is absent. */
export interface Hyperparameters {
  /** The options that all groups of parameters share. */
  readonly optimizer: Settings;
  /** The options in which groups differ, by group; absent where there are none. */
  readonly groups?: readonly Settings[];
  readonly lossScale: Settings;
}

/** Versions by package, and the version of Node. */
export type Versions = Readonly<Record<string, string>>;

/** The machine of a program, without its GPU. */
export interface Machine {
  readonly os: string;
  readonly cpu: string;
  /** Number of cores that the process may use. */
  readonly cores: number;
  readonly memoryBytes: number;
}

/** The result of training once in one precision. */
export interface RunSummary {
  /** Name of the recipe. */
  readonly precision: string;
  readonly steps: number;
  readonly appliedSteps: number;
  readonly skippedSteps: number;
  /** 1 without scaling. */
  readonly finalScale: number;
  /** In `summary.json`, numbers that are not finite (after divergence) are null. */
  readonly test: TestResult;
  /** False where nothing was tested, so that the loss in `test` is NaN; absent otherwise. */
  readonly isTested?: false | undefined;
  /** Median over steady state. */
  readonly msPerStep: number;
  readonly samplesPerSecond: number;
  /** The most bytes held at one time. */
  readonly peakBytes: number;
  /** Bytes that the forward pass keeps for the backward pass. */
  readonly activationBytes: number;
  readonly parameterBytes: number;
  readonly optimizerBytes: number;
  readonly perStep: StepCounters;
  /** Milliseconds of a step on the GPU's clock, median of samples; absent where the device has no timestamps. */
  readonly deviceMsPerStep?: number | undefined;
  readonly phases?: PhaseCosts | undefined;
  readonly hyperparameters?: Hyperparameters | undefined;
  /** SHA-256 of all parameters after training, as stored, in the order of their names. */
  readonly parameterSha256: string;
  readonly wallSeconds: number;
}

/** The content of `summary.json`. */
export interface Summary {
  readonly schema: 1;
  readonly task: string;
  readonly seed: number;
  readonly device: RunDevice;
  /** The settings of the program. */
  readonly settings?: Settings | undefined;
  /** Versions of the program's packages; `RunFolder` adds them, and the machine. */
  readonly versions?: Versions | undefined;
  readonly machine?: Machine | undefined;
  readonly runs: readonly RunSummary[];
}
