import type { HalfstepLibrary } from "./lanes/halfstep.js";
import type { JaxLibrary } from "./lanes/jax.js";
import type { OnnxLibrary } from "./lanes/onnx.js";
import type { Precision, Prepared } from "./lanes/prepared.js";
import type { TfjsLibrary } from "./lanes/tfjs.js";
import type { TorchLibrary } from "./lanes/torch.js";

/** The least work of any implementation, for the fraction of the machine's limit. */
export interface Cost {
  /** Floating-point additions and multiplications. */
  readonly operations: number;
  /** Bytes read and written, each operand once. */
  readonly bytes: number;
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
  /** The items that one call processes: 128 images, 4,096 tokens. */
  readonly items?: { readonly count: number; readonly unit: string };
  /** Largest difference between results that still counts as equal, relative to the largest result. */
  readonly tolerance: Readonly<Record<Precision, number>>;
  /** One element of the result in float64, from the definition: checked at a sample of places in every library. */
  expected?(index: number): number;
  /** The position of this case on the axis of a scaling study. */
  readonly point?: { readonly axis: string; readonly value: number; readonly parameters: number };
  readonly on: Implementations;
}

/** A family of cases that are measured together: one file in workloads/, one line in its index. */
export interface Workload {
  readonly name: string;
  /** A description of the computation, for readers of the table. */
  readonly title: string;
  readonly level: "operation" | "training" | "scaling";
  readonly cases: readonly Case[];
}

/** The rounding error of the storage, plus that of sums of a thousand terms. */
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
