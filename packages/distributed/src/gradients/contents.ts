import { hashOf } from "../hash.js";
import { presentIn, type ReducibleOptimizer } from "./reducible.js";

/** Tells which parameters have gradients on a rank: the number is the same where they are the same. */
export function contentsOf<B>(optimizers: readonly ReducibleOptimizer<B>[]): number {
  const places = optimizers.map((optimizer) =>
    optimizer.paramGroups
      ? optimizer.paramGroups.map(({ params }) => presentIn(params).join(" "))
      : Array.from(optimizer.gradients(), ({ offset, length }) => `${offset} ${length}`),
  );
  return hashOf(JSON.stringify(places));
}
