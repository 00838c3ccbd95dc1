import type { Binding, Launch } from "@halfstep/device";

/** The part of an optimizer that an exchange of its gradients uses: optimizers of `@halfstep/optim` on a runtime's target have it. */
export interface ReducibleOptimizer<B> {
  readonly target: { launch(launch: Launch<B>): void };
  /** The gradients that are present, whole groups where possible. */
  gradients(): Iterable<Binding<B>>;
  /** The loss scales that gradients carry, as optimizers of `@halfstep/optim` tell a scaler. */
  gradientMarks?(): Iterable<{ readonly marks: Iterable<"plain" | CarriedScale> }>;
  /** With mode "zero1", each has parameters that `GradientExchange.shard()` gave. */
  readonly paramGroups?: readonly { readonly params: ReducibleParameters<B> }[];
}

/** An optimizer, or a wrapper around one, such as `FP16Optimizer`. */
export type Reducible<B> = ReducibleOptimizer<B> | { readonly optimizer: Reducible<B> };

/**
 * The optimizers inside their wrappers.
 * @throws TypeError for what is no optimizer
 */
export const reducible = <B>(given: readonly Reducible<B>[]): readonly ReducibleOptimizer<B>[] => {
  const all = given.map((each) => {
    let inner: Partial<ReducibleOptimizer<B> & { optimizer: Reducible<B> }> | undefined = each;
    while (inner && !inner.gradients && inner.optimizer) inner = inner.optimizer;
    return inner as ReducibleOptimizer<B> | undefined;
  });
  if (all.length === 0 || !all.every((each) => typeof each?.gradients === "function"))
    throw new TypeError("reduce(optimizers): pass an optimizer of @halfstep/optim, or several");
  return all as readonly ReducibleOptimizer<B>[];
};

/** What an exchange has to know of a loss scale. */
interface CarriedScale {
  readonly isUnscaled: boolean;
  readonly countsStores?: boolean;
}

/** The parameters of one group of an optimizer. */
export interface ReducibleParameters<B> {
  readonly gradients: B;
  readonly segments: readonly Segment[];
  hasGradient?(segment: number): boolean;
  readonly shard?: object;
}

/** The place and shape of one gradient among flat gradients. */
export interface Segment {
  readonly offset: number;
  readonly shape: readonly number[];
}

/** The places of the parameters that have gradients in this step. */
export const presentIn = <B>(params: ReducibleParameters<B>): readonly number[] =>
  [...params.segments.keys()].filter((segment) => params.hasGradient?.(segment) ?? true);
