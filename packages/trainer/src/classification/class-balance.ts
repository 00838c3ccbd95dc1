/**
 * Weights that make classes count alike in a loss: the number of examples over the number of classes that have any, over the examples of
 * the class (scikit-learn's `class_weight="balanced"`). Their mean over the examples is 1. Classes without examples have the weight 1.
 */
export function balancedWeights(counts: ArrayLike<number>): Float32Array {
  const list = Array.from(counts);
  const total = list.reduce((sum, count) => sum + count, 0);
  const present = list.filter((count) => count > 0).length;
  return Float32Array.from(list, (count) => (count === 0 ? 1 : total / (present * count)));
}

/**
 * Weights of the positive examples of each label, where an example may have any number of labels: as many positive as negative examples
 * would have the weight 1. For `posWeight` of `binaryCrossEntropyWithLogits`. Labels that all or no examples have get the weight 1.
 * @param counts number of examples that have each label
 * @param examples number of all examples
 */
export const balancedPositives = (counts: ArrayLike<number>, examples: number): Float32Array =>
  Float32Array.from(counts, (count) =>
    count === 0 || count === examples ? 1 : (examples - count) / count,
  );

/** How many times rarer than the most frequent class one is, for classes to be called unbalanced. */
const unbalanced = 4;

/**
 * A line about classes that differ much in their numbers of examples; undefined where they do not. The accuracy of always predicting the
 * most frequent class is what a model has to exceed.
 */
export function describeImbalance(
  labels: readonly string[],
  counts: ArrayLike<number>,
): string | undefined {
  const known = labels
    .map((label, i) => ({ label, count: counts[i] as number }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last || first.count < unbalanced * last.count) return undefined;
  const total = known.reduce((sum, { count }) => sum + count, 0);
  const share = ((100 * first.count) / total).toFixed(1);
  const times = Math.round(first.count / last.count).toLocaleString("en");
  return `unbalanced: always ${first.label} is right in ${share} %, and ${last.label} is ${times} times rarer`;
}
