import type { Binding } from "@halfstep/device";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import { adafactorRule, factoredLayout, factoredMoments } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireNumber, shown } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import { type FlatTensors, orderedSegments } from "./flat-tensors.js";
import type { GroupExtension } from "./group-extension.js";
import { placesAt } from "./saved-buffer.js";

/** Options of a parameter group of {@link Adafactor}. */
export interface AdafactorGroupOptions extends CommonOptions {
  /** Moments take `t^beta2Decay` of the new square in step t. At most 0. */
  beta2Decay: number;
  /**
   * Least root of a second moment, null for 2^-23; and least root mean square of a parameter. The first is at least 2^-63, so
   * that its square does not vanish in float32.
   */
  eps: readonly [number | null, number];
  /** Largest root mean square of an update. */
  d: number;
}

/** Defaults are torch's: lr 1e-2, beta2Decay -0.8, eps [null, 1e-3], d 1, weightDecay 0. */
export interface AdafactorOptions extends Partial<AdafactorGroupOptions>, OptimizerOptions {}

/**
 * Adafactor (Shazeer and Stern 2018) with the arithmetic of torch.optim.Adafactor. A parameter of two axes or more has second
 * moments of its rows and columns (over the last two axes), any other has one for each element; all are float32 for every
 * format of `moments`. A step takes six launches.
 *
 * @example
 * const optimizer = new Adafactor(target, flat, { lr: 1e-2 });
 */
export class Adafactor<B> extends FlatOptimizer<B, AdafactorGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdafactorGroupOptions>[],
    options: AdafactorOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: AdafactorGroupOptions = {
  lr: 1e-2,
  beta2Decay: -0.8,
  eps: [null, 1e-3],
  d: 1,
  weightDecay: 0,
  maximize: false,
};

const eps1Of = ({ eps: [eps1] }: AdafactorGroupOptions): number => eps1 ?? 2 ** -23;

const algorithm: Algorithm<AdafactorGroupOptions> = {
  name: "Adafactor",
  rule: () => adafactorRule,
  scalars: (options) => ({
    eps1Squared: eps1Of(options) ** 2,
    eps2: options.eps[1],
    d: options.d,
    weightDecay: options.weightDecay,
  }),
  validate(options) {
    const { beta2Decay, eps, d } = options;
    if (!Array.isArray(eps) || eps.length !== 2)
      throw new RangeError(
        `eps is ${shown(eps)}: give two numbers, the first of which may be null`,
      );
    if (!(beta2Decay <= 0 && Number.isFinite(beta2Decay)))
      throw new RangeError(`beta2Decay is ${shown(beta2Decay)}: it must be a number of at most 0`);
    requireNumber("eps[0]", eps1Of(options), 2 ** -63);
    requireNumber("eps[1]", eps[1], 0);
    requireNumber("d", d, 1);
  },
  columns: ({ beta2Decay }) => ({
    key: `${beta2Decay}`,
    settledAt: Number.POSITIVE_INFINITY,
    row: (step) => [(step + 1) ** beta2Decay, 1 / Math.sqrt(step + 1), 0],
  }),
  extension: factored,
};

function factored<B>(
  target: ResidentTarget<B>,
  { segments }: FlatTensors<B>,
): GroupExtension<B, AdafactorGroupOptions> {
  const ordered = orderedSegments(segments);
  const layout = factoredLayout(ordered.map(({ segment }) => segment));
  const floats = (length: number): Binding<B> => ({
    buffer: allocateResident(target, Math.max(length, 1) * 4),
    offset: 0,
    length: Math.max(length, 1),
    dtype: "float32",
  });
  const words = (values: Uint32Array): Binding<B> => {
    const binding: Binding<B> = { ...floats(values.length), dtype: "uint32" };
    target.write(binding, values);
    return binding;
  };
  const buffers = {
    tasks: words(layout.tasks),
    matrices: words(layout.matrices),
    rowVar: floats(layout.rowCount),
    colVar: floats(layout.columnCount),
    factored: floats(layout.rowCount + layout.columnCount),
  };
  const inputs = { factored: buffers.factored, places: words(layout.places) };
  const inOrder = (
    of: readonly { readonly offset: number; readonly length: number }[],
  ): { readonly offset: number; readonly length: number }[] => {
    const places = new Map(ordered.map(({ index }, place) => [index, place]));
    return segments.map((_, index) => of[places.get(index) as number] as (typeof of)[number]);
  };
  return {
    inputs: () => inputs,
    saved: [
      placesAt("rowVar", buffers.rowVar, segments, inOrder(layout.rows)),
      placesAt("colVar", buffers.colVar, segments, inOrder(layout.columns)),
    ],
    before({ options, gradients, control, ranges }) {
      factoredMoments(target, { ...buffers, gradients, control }, layout, ranges, {
        eps1: eps1Of(options),
      });
    },
  };
}
