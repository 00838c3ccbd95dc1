import { castTo, ne, type Tensor, where } from "@halfstep/tensor";
import type { Learner, Scores } from "./learner.js";
import type { Encoded } from "./tokenizer.js";

/** What a model says of a text. */
export interface Answer {
  readonly labels: readonly number[];
  /** Whether all of these labels are better than others by more than the margin. */
  readonly isSure: boolean;
}

/** The labels of a batch, while they are on the device. */
export interface Decision {
  readonly best: Tensor;
  /** The best labels where all others have become better. */
  readonly challenged?: Tensor;
}

/**
 * How far halves may be off, twice over: a label is sure in halves that would win by more. It is more than 8 times the largest error
 * that was seen of a difference between two scores of one word, text or hidden token: 0.0132 of tags (120,857 words of Brown), 0.0069 of
 * classes (1,194 sentences), 0.0144 of hidden tokens (2,548). These are errors of half a unit in the last place, 2^-11, in activations
 * of about 1, added up over 64 features and two layers: much deeper and wider models have larger ones.
 */
export const closeMargin: number = 1 / 8;

/**
 * The decision of a model, and with a margin what would be decided if each label but the best one had a score that is better by it.
 * Where both are the same, no scores that are off by less than half the margin decide otherwise, not even where labels are decided
 * together: a path of tags that differs in k of them has been given k times the margin, and still is worse.
 */
export function decision(
  learner: Pick<Learner<never, never>, "decide">,
  scores: Scores,
  margin?: number,
): Decision {
  const best = learner.decide(scores);
  return margin === undefined
    ? { best }
    : { best, challenged: learner.decide(challenged(scores, best, margin)) };
}

function challenged({ values, mask }: Scores, best: Tensor, margin: number): Scores {
  // A sum in halves may be off by as much as the margin is for.
  const exact = castTo(values, "float32");
  const labels = exact.shape.at(-1) as number;
  const each = exact.runtime.tensor(Uint32Array.from({ length: labels }, (_, i) => i));
  const isOther = ne(best.reshape([...best.shape, 1]), each);
  return { values: where(isOther, exact.add(margin), exact), mask };
}

/** What was decided of each text of a batch. */
export async function answersOf<Input extends Encoded>(
  learner: Pick<Learner<Input, Input>, "labelsOf">,
  { best, challenged }: Decision,
  batch: readonly Input[],
): Promise<readonly Answer[]> {
  const read = async (labels: Tensor) =>
    learner.labelsOf((await labels.toArray()) as Uint32Array, batch);
  const [first, second] = await Promise.all([read(best), challenged && read(challenged)]);
  return first.map((labels, i) => ({
    labels,
    isSure: !second || labels.every((label, j) => label === second[i]?.[j]),
  }));
}
