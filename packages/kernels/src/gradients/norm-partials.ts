import type { Kernel, KernelScalar } from "@halfstep/device";

/** Partial results of a norm, one for each invocation: enough to fill a GPU, few enough to gather in one workgroup. */
export const partialCount = 16_384;

/** Invocations of the workgroup that gathers them. */
export const gatherSize = 256;

/** What is added to a norm that divides, as torch does. */
export const normEps = 1e-6;

/** Scalars of the kernels that gather a norm; `p` is what a norm of general power goes by. */
export const power: KernelScalar = { name: "p", type: "f32", runtime: true };
export const maxNorm: KernelScalar = { name: "maxNorm", type: "f32", runtime: true };

/** The kernels of one kind of norm. */
export interface NormKernels {
  /** Makes partial results of gradients. */
  readonly first: Kernel;
  /** Joins those of more gradients with them. */
  readonly next: Kernel;
  /** Makes the norm and the factor of them. */
  readonly gather: Kernel;
}
