import type { TrainConfig } from "./config.js";
import type { LaneStatistics, StepPoint } from "./lane.js";
import type { SetupId } from "./setups.js";

/** What the page asks of the worker. */
export type ToWorker =
  | {
      readonly type: "start";
      readonly config: TrainConfig;
      /** Where the files of the page lie. */
      readonly base: string;
      /** One for each setup, where the task has a surface to draw. */
      readonly canvases: readonly OffscreenCanvas[];
      readonly colours: SurfaceColours;
      /** Whether to go on where a run of the same configuration was left. */
      readonly resumes: boolean;
    }
  | { readonly type: "play" }
  | { readonly type: "pause" }
  | { readonly type: "step" }
  | { readonly type: "classify"; readonly pixels: Float32Array }
  | { readonly type: "save"; readonly setup: SetupId };

/** Red, green and blue from 0 to 1. */
export type Colour = readonly [number, number, number];

/** The colours of a decision surface, one for each class. */
export interface SurfaceColours {
  readonly first: Colour;
  readonly second: Colour;
}

/** News of one lane. */
export interface LaneProgress {
  readonly id: SetupId;
  readonly points: readonly StepPoint[];
  readonly statistics?: LaneStatistics;
  readonly accuracy?: number;
  readonly text?: string;
  /** Of the weights, when training rests. */
  readonly hash?: string;
  readonly origin?: string;
  readonly failure?: string;
}

/** What the worker tells the page. */
export type FromWorker =
  | {
      readonly type: "device";
      readonly kind: "gpu" | "cpu";
      readonly label: string;
      /** Why there is no GPU, and what to do. */
      readonly reason?: string;
    }
  /** The device is gone, and another one is looked for. */
  | { readonly type: "lost"; readonly step: number }
  /** Training goes on from a saved state: it replaces what the page knows of the lanes. */
  | {
      readonly type: "resumed";
      readonly step: number;
      readonly lanes: readonly LaneProgress[];
    }
  | {
      readonly type: "compiling";
      readonly compiled: number;
      readonly total: number;
      readonly kernel: string;
    }
  | {
      readonly type: "progress";
      readonly lanes: readonly LaneProgress[];
      readonly isPlaying: boolean;
    }
  | { readonly type: "classified"; readonly probabilities: readonly Float32Array[] }
  | { readonly type: "saved"; readonly name: string; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: "failed"; readonly message: string };
