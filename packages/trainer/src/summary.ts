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

/** A line of `metrics.jsonl` that tells of an evaluation. Lines of steps have no `kind`. */
export interface EvaluationMetrics {
  readonly kind: "evaluation";
  /** Name of the recipe. */
  readonly precision: string;
  /** After how many steps. */
  readonly step: number;
  /** That the last of these steps was of; counts from 1. */
  readonly epoch: number;
  /** Whether it is the best so far. */
  readonly best: boolean;
  /** By their names: loss, accuracy, … Null where one was not finite. */
  readonly values: Readonly<Record<string, number | null>>;
}

/** A line of `metrics.jsonl`. */
export type MetricsLine = StepMetrics | EvaluationMetrics;

/** Whether a line tells of an evaluation. */
export const isEvaluation = (line: MetricsLine): line is EvaluationMetrics => "kind" in line;

/** The device that a run used. */
export interface RunDevice {
  readonly kind: "gpu" | "cpu";
  /** The adapter's own description. */
  readonly adapter: string;
  readonly tier: "subgroup matrix" | "native" | "packed" | "cpu";
}

/** What one training step costs besides arithmetic, as counted in steady state. */
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
 * What training does: getting batches; recording a step; planning, encoding and submitting it, with waiting where the host is
 * too far ahead of the device; hooks that take their time, evaluations above all; saving checkpoints.
 */
export type PhaseName = "data" | "record" | "submit" | "evaluation" | "checkpoint";

/** What a phase of a step costs. */
export interface PhaseCost {
  /** In all, on the host's clock. */
  readonly milliseconds: number;
  readonly times: number;
  /** The most pooled memory that the device was seen to hold in it; 0 on the CPU. */
  readonly peakBytes: number;
}

/** The phases that there were. */
export type PhaseCosts = { readonly [Phase in PhaseName]?: PhaseCost };

/** What a test found: the mean loss, and metrics by their names. `accuracy` is from 0 to 1. */
export interface TestResult {
  readonly loss: number;
  readonly [metric: string]: number;
}

/** A number, a truth, a text, or a list of these. Null where there is none: a flag that was left out, a limit that is infinite. */
export type SettingValue = PlainValue | readonly PlainValue[];

type PlainValue = string | number | boolean | null;

/** Values by their names, as `summary.json` has them: flags of a program by their names without dashes, options of an optimizer. */
export type Settings = Readonly<Record<string, SettingValue>>;

/** What an optimizer and a loss scaler were made with, by their options. Without a loss scale there is none. */
export interface Hyperparameters {
  /** What all groups of parameters have in common. */
  readonly optimizer: Settings;
  /** What groups differ in, group by group; absent where they do not. */
  readonly groups?: readonly Settings[];
  readonly lossScale: Settings;
}

/** Versions by packages, and that of Node. */
export type Versions = Readonly<Record<string, string>>;

/** Where a program ran, its GPU aside. */
export interface Machine {
  readonly os: string;
  readonly cpu: string;
  /** That the process may use. */
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
  /** `summary.json` has null for what is no finite number, where training diverged. */
  readonly test: TestResult;
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
  /** Of all parameters after training, as stored, in the order of their names. */
  readonly parameterSha256: string;
  readonly wallSeconds: number;
}

/** The content of `summary.json`. */
export interface Summary {
  readonly schema: 1;
  readonly task: string;
  readonly seed: number;
  readonly device: RunDevice;
  /** What the program was asked to do. */
  readonly settings?: Settings | undefined;
  /** Of what wrote it; `RunFolder` adds them, and the machine. */
  readonly versions?: Versions | undefined;
  readonly machine?: Machine | undefined;
  readonly runs: readonly RunSummary[];
}
