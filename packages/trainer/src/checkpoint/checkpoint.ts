import type { CheckpointError } from "./checkpoint-error.js";

/** The content of a checkpoint. */
export interface CheckpointContent {
  /** Optimizer steps so far, skipped ones included. */
  readonly step: number;
  /** Completed micro-steps of the next step; 0 between steps. */
  readonly microStep: number;
  /** Whether it is the best so far by the score of training; rotation keeps the newest of these. */
  readonly best: boolean;
  /** A hash of the tables by which kernels were chosen; null where there are none. */
  readonly tables?: string | null | undefined;
  /** States by name: plain objects, lists, typed arrays, numbers, strings, booleans and null, nested as they come. */
  readonly parts: Readonly<Record<string, unknown>>;
}

/** A checkpoint that was read and validated completely. */
export interface Checkpoint extends CheckpointContent {
  /** Its folder. */
  readonly path: string;
}

/** The result of a search for the newest checkpoint. */
export interface NewestCheckpoint {
  /** Undefined where there is none. */
  readonly checkpoint: Checkpoint | undefined;
  /** The errors of newer ones. */
  readonly skipped: readonly CheckpointError[];
}

/** A store of checkpoints: `CheckpointFolder` of `@halfstep/trainer/node`, or a custom one. */
export interface CheckpointStore {
  /**
   * Resolves when the checkpoint is durable, even if the process then ends. It replaces one of the same step that has another state, and
   * until then the old one is there. Checkpoints of later steps are removed: `newest` then gives this one.
   */
  save(content: CheckpointContent): Promise<void>;
  /** The newest whole checkpoint, with arrays that the caller may write into. */
  newest(): Promise<NewestCheckpoint>;
}
