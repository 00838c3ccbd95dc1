import type { Binding } from "@halfstep/device";
import {
  allocateResident,
  clipGradients,
  gradientNorm,
  gradientNormScratchBytes,
  type ResidentTarget,
} from "@halfstep/kernels";
import { NonFiniteGradientError } from "./errors.js";

/** What clipping needs of an optimizer. */
export interface ClippableOptimizer<B> {
  readonly target: ResidentTarget<B>;
  gradients(): Iterable<Binding<B>>;
}

export interface ClipOptions<B> {
  /** 2, or Infinity for the largest magnitude. Default 2. */
  readonly normType?: number;
  /** Makes {@link GradientNorm.read} reject where the norm is infinite or NaN. Default false. */
  readonly errorIfNonfinite?: boolean;
  /** A scaler's float32 `[scale, 1 / scale, …]`, where gradients still carry the scale: the norm is that without it. */
  readonly gradScale?: B;
}

/** The norm that clipping found, on the device. */
export interface GradientNorm<B> {
  /** float32 `[norm, factor by which gradients were multiplied]`; the optimizer's next clipping overwrites it. */
  readonly buffer: B;
  /** Waits for the device. */
  read(): Promise<number>;
}

interface Scratch<B> {
  readonly partials: B;
  readonly norm: Binding<B>;
  readonly noScale: Binding<B>;
}

const scratches = new WeakMap<object, unknown>();

/**
 * Multiplies the gradients of an optimizer by `min(1, maxNorm / (norm + 1e-6))`, as torch.nn.utils.clip_grad_norm_ does,
 * without waiting for the device. Call it on unscaled gradients (after `scaler.unscale(optimizer)`), or give `gradScale`.
 * Where the norm is not finite, gradients come out as zeros and NaN: a scaler's `foundInf` skips that step.
 *
 * @throws RangeError for a `maxNorm` that is not positive, or another `normType`.
 */
export function clipGradNorm<B>(
  optimizer: ClippableOptimizer<B>,
  maxNorm: number,
  { normType = 2, errorIfNonfinite = false, gradScale }: ClipOptions<B> = {},
): GradientNorm<B> {
  if (!(maxNorm > 0)) throw new RangeError(`maxNorm is ${maxNorm}: it must be positive`);
  if (normType !== 2 && normType !== Number.POSITIVE_INFINITY)
    throw new RangeError(`normType is ${normType}: choose 2 or Infinity`);
  const { target } = optimizer;
  const { partials, norm, noScale } = scratchOf(optimizer);
  const gradients = [...optimizer.gradients()].map(plainBinding);
  gradientNorm(
    target,
    { gradients, scale: gradScale ?? noScale.buffer, norm: norm.buffer, scratch: partials },
    { maxNorm, normType },
  );
  for (const x of gradients) target.launch(clipGradients({ x, norm: norm.buffer }));
  return {
    buffer: norm.buffer,
    async read() {
      const [value] = await target.read(norm);
      if (errorIfNonfinite && !Number.isFinite(value))
        throw new NonFiniteGradientError(
          `the norm of the gradients is ${value}: look for the first tensor that is not finite, or lower the loss scale`,
        );
      return value as number;
    },
  };
}

function scratchOf<B>(optimizer: ClippableOptimizer<B>): Scratch<B> {
  const known = scratches.get(optimizer) as Scratch<B> | undefined;
  if (known) return known;
  const { target } = optimizer;
  const pair = (): Binding<B> => ({
    buffer: allocateResident(target, 8),
    offset: 0,
    length: 2,
    dtype: "float32",
  });
  const scratch = {
    partials: allocateResident(target, gradientNormScratchBytes),
    norm: pair(),
    noScale: pair(),
  };
  target.write(scratch.noScale, [1, 1]);
  scratches.set(optimizer, scratch);
  return scratch;
}

const plainBinding = <B>({ buffer, offset, length, dtype }: Binding<B>): Binding<B> => ({
  buffer,
  offset,
  length,
  dtype,
});
