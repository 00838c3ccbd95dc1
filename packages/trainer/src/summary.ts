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
  /** Mean over the batch, in nats, unscaled. Null where it was not finite: JSON has no NaN. */
  readonly loss: number | null;
  /** False when the scaler skipped the step. */
  readonly applied: boolean;
  /** The loss scale that this step was run with; 1 without scaling. */
  readonly scale: number;
  readonly lr: number;
}

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

/** The result of training once in one precision. */
export interface RunSummary {
  /** Name of the recipe. */
  readonly precision: string;
  readonly steps: number;
  readonly appliedSteps: number;
  readonly skippedSteps: number;
  /** 1 without scaling. */
  readonly finalScale: number;
  /** Accuracy from 0 to 1; mean loss in nats, which `summary.json` gives as null where training diverged. */
  readonly test: { readonly accuracy: number; readonly loss: number };
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
  readonly runs: readonly RunSummary[];
}
