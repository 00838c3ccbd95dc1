import type { CheckpointError } from "./checkpoint-error.js";

/** What goes into a checkpoint. */
export interface CheckpointContent {
  /** Optimizer steps so far, skipped ones included. */
  readonly step: number;
  /** Micro-steps of the next step that are done already; 0 between steps. */
  readonly microStep: number;
  /** Whether it is the best so far by whatever score training goes by; rotation keeps the newest of these. */
  readonly best: boolean;
  /** A hash of the tables by which kernels were chosen; null where there are none. */
  readonly tables?: string | null | undefined;
  /** States by name: plain objects, lists, typed arrays, numbers, strings, booleans and null, nested as they come. */
  readonly parts: Readonly<Record<string, unknown>>;
}

/** A checkpoint that was read whole, every byte of it checked. */
export interface Checkpoint extends CheckpointContent {
  /** Its folder. */
  readonly path: string;
}

/** What a look for the newest checkpoint has found. */
export interface NewestCheckpoint {
  /** Undefined where there is none at all. */
  readonly checkpoint: Checkpoint | undefined;
  /** What is wrong with newer ones. */
  readonly skipped: readonly CheckpointError[];
}

/** Where checkpoints go: `CheckpointFolder` of `@halfstep/trainer/node`, or a place of one's own. */
export interface CheckpointStore {
  /** Resolves when the checkpoint is safe: what happens to the process from then on does not matter. */
  save(content: CheckpointContent): Promise<void>;
  /** The newest checkpoint that is whole. */
  newest(): Promise<NewestCheckpoint>;
}
