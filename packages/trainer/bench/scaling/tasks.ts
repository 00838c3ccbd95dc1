import type { WireFormat } from "@halfstep/distributed";
import type { Stall } from "./stalls.js";

/** A model that is trained. */
export type ModelName = "mlp" | "cnn" | "gpt";

/** Steps of training: how long they take, beside what they would take without a network. */
export interface StepsTask {
  readonly kind: "steps";
  /**
   * "alone" trains on rank 0, while the others wait; "none" exchanges nothing; "lockstep" exchanges nothing, and ranks wait for each other
   * after each step; "empty" does all that an exchange does but sending; "job" exchanges with the other ranks.
   */
  readonly peers: "alone" | "none" | "lockstep" | "empty" | "job";
  readonly wire: WireFormat;
  readonly buckets: number;
  /** The fewest bytes of gradients in a bucket. Default 2^16, with which small networks have as many buckets as are asked for. */
  readonly leastBytes?: number;
  /** Default "mlp". */
  readonly model?: ModelName;
  /** Samples of a rank. */
  readonly batch: number;
  /** Whether a step has the forward pass alone. Default false. */
  readonly isForward?: boolean;
  /** Steps that are measured, after some that are not. */
  readonly steps: number;
}

/**
 * Steps of several kinds, measured in turns, of which the fastest of each kind count. Other work on the machine comes and goes, and only
 * delays them. An exchange waits for the slower of two ranks, so that medians tell of the machine more than of the exchange.
 */
export interface TurnsTask {
  readonly kind: "turns";
  readonly tasks: readonly StepsTask[];
  readonly rounds: number;
}

/** The latency of a link and its bytes a second. */
export interface LinkTask {
  readonly kind: "link";
  /** The bytes by which two collectives differ. */
  readonly bytes: number;
}

/** The mean of many numbers, packed before where the wire has 16 bits. */
export interface LargeTask {
  readonly kind: "large";
  readonly wire: WireFormat;
  readonly numbers: number;
}

export type ScalingTask = StepsTask | TurnsTask | LinkTask | LargeTask;

/** A collective in an average step. */
export interface CallTimes {
  /** Milliseconds from the beginning of the step. */
  readonly begin: number;
  /** Sent to each other rank. */
  readonly bytes: number;
  /** Whether it is the second one of its bucket: it waits for the first, not for the device. */
  readonly isSecond: boolean;
}

/** The result of measuring steps. */
export interface MeasuredSteps {
  readonly task: StepsTask;
  /** The median of a step, in milliseconds. */
  readonly step: number;
  readonly stall: Stall;
  /** Bytes that this rank sent in a step. */
  readonly bytes: number;
  readonly calls: readonly CallTimes[];
}

/** The result of measuring a link. */
export interface MeasuredLink {
  readonly task: LinkTask;
  readonly ranks: number;
  /** Of a collective without bytes, in milliseconds. */
  readonly latency: number;
  /** Bytes that a rank sends in a millisecond. */
  readonly bytesPerMs: number;
}

/** The result of a mean of many numbers. */
export interface MeasuredLarge {
  readonly task: LargeTask;
  readonly milliseconds: number;
  readonly stall: Stall;
}

/** A line of a rank. */
export type RankLine = MeasuredSteps | MeasuredLink | MeasuredLarge | { readonly mark: string };
