import { adamw, type ResidentTarget } from "@halfstep/kernels";
import {
  type Algorithm,
  type CommonOptions,
  FlatOptimizer,
  type GroupInput,
  type ParameterStorage,
  requireNumber,
} from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link AdamW}. */
export interface AdamWGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  amsgrad: boolean;
}

/** Defaults are torch's: lr 1e-3, betas [0.9, 0.999], eps 1e-8, weightDecay 0.01. */
export interface AdamWOptions extends Partial<AdamWGroupOptions> {
  /** Default: `"float32"` for float32 values, and else `"master"`. */
  readonly storage?: ParameterStorage;
}

/**
 * AdamW (Loshchilov and Hutter 2019) with the arithmetic of torch.optim.AdamW, moments in float32. Bias corrections come
 * from tables made in float64.
 *
 * @example
 * const optimizer = new AdamW(target, flat, { lr: 1e-3 });
 */
export class AdamW<B> extends FlatOptimizer<B, AdamWGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdamWGroupOptions>[],
    { storage, ...options }: AdamWOptions = {},
  ) {
    super(target, params, algorithm, { ...defaults, ...options }, storage);
  }
}

const defaults: AdamWGroupOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0.01,
  amsgrad: false,
  maximize: false,
};

const algorithm: Algorithm<AdamWGroupOptions> = {
  name: "AdamW",
  stateNames: ({ amsgrad }) => ["expAvg", "expAvgSq", ...(amsgrad ? ["maxExpAvgSq"] : [])],
  validate({ betas, eps }) {
    for (const [i, beta] of betas.entries())
      if (!(beta >= 0 && beta < 1))
        throw new RangeError(`betas[${i}] is ${beta}: it must be at least 0 and less than 1`);
    requireNumber("eps", eps, 0);
    if (eps < 2 ** -126)
      throw new RangeError(
        `eps is ${eps}, which vanishes in float32, and parameters without gradient would become NaN: use 1e-8`,
      );
  },
  columns({ betas: [beta1, beta2] }) {
    return {
      key: `${beta1},${beta2}`,
      settledAt: Math.max(settledAt(beta1), settledAt(beta2)),
      row: (step) => [1 / (1 - beta1 ** (step + 1)), 1 / Math.sqrt(1 - beta2 ** (step + 1)), 0],
    };
  },
  update: ({ state, ...operands }, options) =>
    adamw({ ...operands, ...(state as unknown as Moments<typeof operands.values>) }, options),
};

interface Moments<T> {
  readonly expAvg: T;
  readonly expAvgSq: T;
  readonly maxExpAvgSq?: T;
}

/** Where 1 - beta^t is 1 in float32, with a margin. */
const settledAt = (beta: number): number =>
  beta === 0 ? 1 : Math.ceil((27 * Math.LN2) / -Math.log(beta)) + 1;
