import type { Binding, LaunchTarget } from "@halfstep/device";
import { fill } from "../copies/fill.js";
import { squareSums } from "../square-sums.js";
import { euclideanNorm } from "./euclidean-norm.js";
import { type NormKernels, partialCount } from "./norm-partials.js";
import { powerNorm } from "./power-norm.js";

/** Bytes of scratch that {@link gradientNorm} needs. */
export const gradientNormScratchBytes: number = squareSums * partialCount * 4;

const largestFloat32 = 3.4028234663852886e38;

function kernelsOf(normType: number): NormKernels {
  if (!(normType > 0))
    throw new RangeError(`normType is ${normType}: it must be a positive number or Infinity`);
  return normType === 2 ? euclideanNorm : powerNorm(normType);
}

/**
 * Writes float32 `[norm, factor]` of several gradients together into `norm`: their p-norm for a positive `normType` (for Infinity their
 * largest magnitude), and `min(1, maxNorm / (norm + 1e-6))`, as torch.nn.utils.clip_grad_norm_ computes it. Infinite gradients give an
 * infinite norm and factor 0, a NaN gives NaN. Gradients are multiplied by `1 / scale` first, element 1 of the float32 `scale`. The
 * order of the sum depends on the lengths only.
 *
 * The 2-norm is correct where it is a normal float32: squares neither overflow nor underflow. Where finite gradients have a larger
 * norm, it is Infinity, and the factor is still correct. For powers p other than 1, 2 and Infinity the sum of the powers must be within
 * the range of float32. Subnormal gradients may count as 0 on a GPU.
 */
export function gradientNorm<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly gradients: readonly Binding<B>[];
    readonly scale: B;
    readonly norm: B;
    /** {@link gradientNormScratchBytes} bytes; allocated from the target where absent. */
    readonly scratch?: B;
  },
  attributes: {
    readonly maxNorm: number;
    /** Default 2. */
    readonly normType?: number;
  },
): void {
  const { gradients, scale, norm } = operands;
  const { maxNorm, normType = 2 } = attributes;
  const { first, next, gather } = kernelsOf(normType);
  const buffer = operands.scratch ?? target.allocate(gradientNormScratchBytes);
  // Only the general kernels read `p`, and a uniform cannot be infinite.
  const p = Number.isFinite(normType) ? normType : 1;
  const partials = {
    buffer,
    offset: 0,
    length: normType === 2 ? squareSums * partialCount : partialCount,
    dtype: normType === 2 ? "float32" : "uint32",
  } as const;
  if (gradients.length === 0) target.launch(fill({ ...partials, dtype: "float32" }, 0));
  for (const [i, x] of gradients.entries())
    target.launch({
      kernel: i === 0 ? first : next,
      bindings: [x, { buffer: scale, offset: 0, length: 2, dtype: "float32" }, partials],
      scalars: { count: x.length, p },
    });
  target.launch({
    kernel: gather,
    bindings: [partials, { buffer: norm, offset: 0, length: 2, dtype: "uint32" }],
    scalars: { maxNorm: Math.min(maxNorm, largestFloat32), p },
  });
}
