import type { HalfstepLibrary } from "./lanes/halfstep.js";
import type { JaxLibrary } from "./lanes/jax.js";
import type { OnnxLibrary } from "./lanes/onnx.js";
import type { TfjsLibrary } from "./lanes/tfjs.js";
import type { TorchLibrary } from "./lanes/torch.js";

/** Storage of operands and results; training keeps float32 parameters in every one of them. */
export type Precision = "float32" | "float16" | "bfloat16";

/** The least that any implementation has to do, for the fraction of the machine's limit. */
export interface Cost {
  /** Floating-point additions and multiplications. */
  readonly operations: number;
  /** Bytes read and written, each operand once. */
  readonly bytes: number;
}

/** A computation made ready in one library. */
export interface Prepared {
  /** Starts it once; the device may still be computing when this resolves. */
  run(): void | Promise<void>;
  /** Runs it, and gives the numbers that all libraries must agree on. Called once, before anything is timed. */
  result(): Promise<Float32Array>;
  /** Resolves when what was started is done. Absent: the lane waits for its device. */
  drain?(): Promise<void>;
  /** What only this library knows about itself. */
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

/** The same computation in several libraries; a library that is left out cannot do it. */
interface Implementations {
  readonly halfstep?: (library: HalfstepLibrary, precision: Precision) => Promise<Prepared>;
  readonly jax?: (library: JaxLibrary, precision: Precision) => Promise<Prepared>;
  readonly tfjs?: (library: TfjsLibrary, precision: Precision) => Promise<Prepared>;
  readonly onnx?: (library: OnnxLibrary, precision: Precision) => Promise<Prepared>;
  readonly torch?: (library: TorchLibrary, precision: Precision) => Promise<Prepared>;
}

export interface Case {
  readonly name: string;
  readonly precisions: readonly Precision[];
  /** Whether `--quick` runs it. */
  readonly isQuick: boolean;
  /** Whether a software adapter would take minutes for it. */
  readonly isForHardware?: boolean;
  /** Names of lanes that would take minutes for its result. */
  readonly tooSlow?: readonly string[];
  cost(precision: Precision): Cost;
  /** What one call processes: 128 images, 4,096 tokens. */
  readonly items?: { readonly count: number; readonly unit: string };
  /** Largest difference between results that still counts as equal, relative to the largest result. */
  readonly tolerance: Readonly<Record<Precision, number>>;
  /** One element of the result in float64, from the definition: checked at a sample of places in every library. */
  expected?(index: number): number;
  /** The point on an axis that this case stands for, in a study of scaling. */
  readonly point?: { readonly axis: string; readonly value: number; readonly parameters: number };
  readonly on: Implementations;
}

/** A family of cases that are measured together: one file in workloads/, one line in its index. */
export interface Workload {
  readonly name: string;
  /** What is computed, for readers of the table. */
  readonly title: string;
  readonly level: "operation" | "training" | "scaling";
  readonly cases: readonly Case[];
}

/** Rounding of the storage, and what sums of a thousand terms add to it. */
export const usualTolerance: Readonly<Record<Precision, number>> = {
  float32: 1e-5,
  float16: 5e-3,
  bfloat16: 2e-2,
};

/** Losses of the first steps, which drift apart as rounding errors grow. */
export const trainingTolerance: Readonly<Record<Precision, number>> = {
  float32: 1e-3,
  float16: 1e-2,
  bfloat16: 3e-2,
};

export const bytesOf = (precision: Precision): number => (precision === "float32" ? 4 : 2);
