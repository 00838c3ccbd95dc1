import { castTo, ne, type Tensor, where } from "@halfstep/tensor";
import type { Learner, Scores } from "./learner.js";
import type { Encoded } from "./tokenizer.js";

/** The answer of a model for a text. */
export interface Answer {
  readonly labels: readonly number[];
  /** Whether each of these labels wins by more than the margin. */
  readonly isSure: boolean;
}

/** The labels of a batch, while they are on the device. */
export interface Decision {
  readonly best: Tensor;
  /** The best labels after all others were raised by the margin. */
  readonly challenged?: Tensor;
}

/**
 * Twice the allowed error of halves: a label that wins by more is certain in halves. The margin is more than 8 times the largest
 * measured error of a difference between two scores of one word, text or hidden token. These errors were 0.0132 for tags (120,857 words
 * of Brown), 0.0069 for classes (1,194 sentences) and 0.0144 for hidden tokens (2,548 tokens). They come from errors of half a unit in
 * the last place, 2^-11, in activations of about 1, added up over 64 features and two layers. Much deeper and wider models have larger
 * ones.
 */
export const closeMargin: number = 1 / 8;

/**
 * The decision of a model and, with a margin, the decision if every label except the best had a score better by the margin. Where both
 * are equal, scores with errors below half the margin lead to the same decision. This also holds where labels are decided together: a
 * path of tags that differs in k of them gets k times the margin, and is still worse.
 */
export function decision(
  learner: Pick<Learner<never, never>, "decide" | "challenge">,
  scores: Scores,
  margin?: number,
): Decision {
  const best = learner.decide(scores);
  if (margin === undefined) return { best };
  const other = learner.challenge?.(scores, best, margin) ?? challenged(scores, best, margin);
  return { best, challenged: learner.decide(other) };
}

function challenged({ values, mask }: Scores, best: Tensor, margin: number): Scores {
  // The error of a sum in halves could be as large as the margin.
  const exact = castTo(values, "float32");
  const labels = exact.shape.at(-1) as number;
  const each = exact.runtime.tensor(Uint32Array.from({ length: labels }, (_, i) => i));
  const isOther = ne(best.reshape([...best.shape, 1]), each);
  return { values: where(isOther, exact.add(margin), exact), mask };
}

/** The answers for each text of a batch. */
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
