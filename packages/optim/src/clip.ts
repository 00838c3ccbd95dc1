import type { Binding } from "@halfstep/device";
import type { MarkedGradient } from "@halfstep/grad-scaler";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import {
  clampGradients,
  clipGradients,
  gradientNorm,
  gradientNormScratchBytes,
} from "@halfstep/kernels/optimizers";
import { requireBoolean, requireNames, requireOptions, requirePositive } from "./checks.js";
import { NonFiniteGradientError } from "./errors.js";
import { refuseScaledClip } from "./scale-marks.js";
import { refuseShard } from "./shard-checks.js";

/** The part of an optimizer that clipping uses. */
export interface ClippableOptimizer<B> {
  readonly target: ResidentTarget<B>;
  /** The gradients that are present, those of a group under one name. */
  gradients(): Iterable<Binding<B> & { readonly name?: string }>;
  /** Their marks of loss scales, as far as known. */
  gradientMarks?(): Iterable<MarkedGradient>;
  /** Whether groups are shards, of which other norms than the 2-norm are not known. */
  readonly paramGroups?: readonly { readonly params: { readonly shard?: object } }[];
}

/** Options of clipping gradients. */
export interface ClipOptions<B> {
  /** A positive number p for the p-norm, or Infinity for the largest magnitude. Default 2. */
  readonly normType?: number;
  /** Makes {@link GradientNorm.read} reject where the norm is infinite or NaN. Default false. */
  readonly errorIfNonfinite?: boolean;
  /** A scaler's float32 `[scale, 1 / scale, …]`, where gradients still carry the scale: the norm is computed without it. */
  readonly gradScale?: B;
}

/** The norm computed by clipping, on the device. */
export interface GradientNorm<B> {
  /** float32 `[norm, factor by which gradients were multiplied]`; the optimizer's next clipping overwrites it. */
  readonly buffer: B;
  /** Waits for the device. */
  read(): Promise<number>;
}

interface Scratch<B> {
  readonly partials: B;
  readonly norm: Binding<B>;
}

/** Scratch of an optimizer's clippings, by the name of the clipped set: all gradients, or a group. */
const scratches = new WeakMap<object, Map<string, unknown>>();
const noScales = new WeakMap<object, unknown>();

/**
 * Multiplies the gradients of an optimizer by `min(1, maxNorm / (norm + 1e-6))`, as torch.nn.utils.clip_grad_norm_ does, without waiting
 * for the device. Call it on unscaled gradients (after `scaler.unscale(optimizer)`), or give `gradScale`. Gradients that are not finite
 * become zeros and NaN: a scaler's `foundInf` skips that step. The 2-norm of finite gradients is correct within the range of float32 and
 * Infinity beyond; they are clipped correctly in both cases.
 *
 * @throws RangeError for a `maxNorm` or `normType` that is not positive, and for unknown options. TypeError without an optimizer. ScalerStateError for gradients that carry a loss scale,
 * without `gradScale`, and for unscaled ones with it.
 */
export function clipGradNorm<B>(
  optimizer: ClippableOptimizer<B>,
  maxNorm: number,
  options: ClipOptions<B> = {},
): GradientNorm<B> {
  requireClippable("clipGradNorm", optimizer);
  return clip(optimizer, "", [...optimizer.gradients()], maxNorm, options);
}

/**
 * {@link clipGradNorm} for each parameter group separately, by the norm of its own gradients.
 *
 * @param maxNorm one limit for all groups, or one for each.
 * @returns the norms, in the order of the groups that have gradients.
 * @throws RangeError as {@link clipGradNorm}, and where there are not as many norms as groups with gradients.
 */
export function clipGradNormPerGroup<B>(
  optimizer: ClippableOptimizer<B>,
  maxNorm: number | readonly number[],
  options: ClipOptions<B> = {},
): readonly GradientNorm<B>[] {
  requireClippable("clipGradNormPerGroup", optimizer);
  const groups = new Map<string, Binding<B>[]>();
  for (const gradient of optimizer.gradients()) {
    const name = gradient.name ?? "";
    groups.set(name, [...(groups.get(name) ?? []), gradient]);
  }
  if (Array.isArray(maxNorm) && maxNorm.length !== groups.size)
    throw new RangeError(
      `maxNorm has ${maxNorm.length} numbers for ${groups.size} groups with gradients: give one for each, or one for all`,
    );
  return [...groups].map(([name, gradients], i) => {
    const most = Array.isArray(maxNorm) ? maxNorm[i] : maxNorm;
    return clip(optimizer, name, gradients, most, options);
  });
}

/**
 * Clamps each element of the gradients of an optimizer to ±`clipValue`, as torch.nn.utils.clip_grad_value_ does, without waiting for the
 * device. It makes infinities finite: call it after `scaler.unscale(optimizer)`, which checks for them. Gradients that still carry a
 * scale need `gradScale`.
 *
 * @throws RangeError for a `clipValue` that is not positive, and for unknown options. TypeError without an optimizer. ScalerStateError as {@link clipGradNorm}.
 */
export function clipGradValue<B>(
  optimizer: ClippableOptimizer<B>,
  clipValue: number,
  options: Pick<ClipOptions<B>, "gradScale"> = {},
): void {
  requireClippable("clipGradValue", optimizer);
  requireOptions("clipGradValue", options);
  requireNames("clipGradValue", options, ["gradScale"]);
  const { gradScale } = options;
  requirePositive("clipValue", clipValue);
  refuseScaledClip(optimizer, gradScale !== undefined);
  const { target } = optimizer;
  const scale = gradScale ?? noScaleOf(target);
  for (const gradient of optimizer.gradients())
    target.launch(clampGradients({ x: plainBinding(gradient), scale }, { limit: clipValue }));
}

function clip<B>(
  optimizer: ClippableOptimizer<B>,
  name: string,
  all: readonly Binding<B>[],
  maxNorm: number,
  options: ClipOptions<B>,
): GradientNorm<B> {
  requireOptions("clipping", options);
  requireNames("clipping", options, ["normType", "errorIfNonfinite", "gradScale"]);
  const { normType = 2, errorIfNonfinite = false, gradScale } = options;
  requirePositive("maxNorm", maxNorm);
  requirePositive("normType", normType);
  requireBoolean("errorIfNonfinite", errorIfNonfinite);
  refuseScaledClip(optimizer, gradScale !== undefined);
  if (normType !== 2)
    for (const { params } of optimizer.paramGroups ?? [])
      refuseShard(params, `the ${normType}-norm of gradients`);
  const { target } = optimizer;
  const { partials, norm } = scratchOf(optimizer, name);
  const gradients = all.map(plainBinding);
  gradientNorm(
    target,
    { gradients, scale: gradScale ?? noScaleOf(target), norm: norm.buffer, scratch: partials },
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

/** Throws for the parameters that torch's functions take. */
function requireClippable(
  name: string,
  optimizer: { readonly gradients?: unknown } | null | undefined,
): void {
  if (typeof optimizer?.gradients !== "function")
    throw new TypeError(
      `${name} takes an optimizer first, not parameters: pass the optimizer that steps them`,
    );
}

function scratchOf<B>(optimizer: ClippableOptimizer<B>, name: string): Scratch<B> {
  const own = scratches.get(optimizer) ?? new Map<string, unknown>();
  scratches.set(optimizer, own);
  const known = own.get(name) as Scratch<B> | undefined;
  if (known) return known;
  const { target } = optimizer;
  const scratch = {
    partials: allocateResident(target, gradientNormScratchBytes),
    norm: pairOf(target),
  };
  own.set(name, scratch);
  return scratch;
}

/** The scale `[1, 1]` for unscaled gradients. */
function noScaleOf<B>(target: ResidentTarget<B>): B {
  const known = noScales.get(target) as B | undefined;
  if (known) return known;
  const pair = pairOf(target);
  target.write(pair, [1, 1]);
  noScales.set(target, pair.buffer);
  return pair.buffer;
}

const pairOf = <B>(target: ResidentTarget<B>): Binding<B> => ({
  buffer: allocateResident(target, 8),
  offset: 0,
  length: 2,
  dtype: "float32",
});

const plainBinding = <B>({ buffer, offset, length, dtype }: Binding<B>): Binding<B> => ({
  buffer,
  offset,
  length,
  dtype,
});
