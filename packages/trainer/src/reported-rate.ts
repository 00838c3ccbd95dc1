/** The part of an optimizer that has its rates. */
interface Rated {
  readonly paramGroups?: readonly { readonly lr?: Rate | undefined }[];
}

/** A learning rate: a number, or a function of the applied steps before. */
type Rate = number | ((appliedSteps: number) => number);

/** The rate of a step that was just taken, after `before` steps: a function where it depends on how many of these were applied. */
export type ReportedRate = (before: number) => Rate;

/**
 * The rates of the metrics: those that `lr` tells, or by default those of the optimizer's first group.
 * @throws TypeError where the optimizer has no group with a rate
 */
export function reportedRate(
  optimizer: Rated,
  lr: ((appliedSteps: number) => number) | undefined,
): ReportedRate {
  // A function without a parameter tells the present rate. One that takes any number of them gets all steps before this one: which of
  // those that are not reported yet were applied is known later.
  if (lr) return (before) => (lr.length === 0 ? lr(before) : lr);
  if (rateOf(optimizer) === undefined)
    throw new TypeError(
      "the optimizer has no paramGroups[0].lr for the metrics: pass lr, a function that tells the learning rate",
    );
  return () => rateOf(optimizer) ?? Number.NaN;
}

/** The rate of the first group. */
function rateOf(optimizer: Rated): Rate | undefined {
  const lr = optimizer.paramGroups?.[0]?.lr;
  return typeof lr === "number" || typeof lr === "function" ? lr : undefined;
}
