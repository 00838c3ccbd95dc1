/** Storage of operands and results; training keeps float32 parameters in every one of them. */
export type Precision = "float32" | "float16" | "bfloat16";

/** A computation made ready in one library. */
export interface Prepared {
  /** Starts it once; the device may still be computing when this resolves. */
  run(): void | Promise<void>;
  /** Runs it, and gives the numbers that all libraries must agree on. Called once, before anything is timed. */
  result(): Promise<Float32Array>;
  /** Resolves when what was started is done. Absent: the lane waits for its device. */
  drain?(): Promise<void>;
  /** Figures that only this library can report. */
  facts?(): Facts;
  /** How it would be run, launch by launch, for people. */
  plan?(): string;
  dispose?(): void;
}

export interface Facts {
  /** Most bytes handed out by the library's own allocator, from before the computation was prepared. */
  readonly allocatorPeakBytes: number;
  /** Bytes that a forward pass keeps for the backward pass. */
  readonly activationBytes?: number;
  /** Launches that do nothing but cast. */
  readonly castDispatches?: number;
}
