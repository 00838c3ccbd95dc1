import type { Kernel, KernelScalar } from "@halfstep/device";

/** Partial results of a norm, one for each invocation: enough to fill a GPU, few enough to gather in one workgroup. */
export const partialCount = 16_384;

/** Invocations of the workgroup that gathers them. */
export const gatherSize = 256;

/** Added to a norm before a division, as in torch. */
export const normEps = 1e-6;

/** Scalars of the kernels that gather a norm; `p` is the power of a general norm. */
export const power: KernelScalar = { name: "p", type: "f32", runtime: true };
export const maxNorm: KernelScalar = { name: "maxNorm", type: "f32", runtime: true };

/** The kernels of one kind of norm. */
export interface NormKernels {
  /** Computes partial results of gradients. */
  readonly first: Kernel;
  /** Adds further gradients to the partial results. */
  readonly next: Kernel;
  /** Computes the norm and the factor from the partial results. */
  readonly gather: Kernel;
}
