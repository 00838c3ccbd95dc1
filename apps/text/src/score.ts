import { noGrad } from "@halfstep/tensor";
import { inPrecision } from "@halfstep/trainer";
import { type Answer, answersOf, decision } from "./answers.js";
import { sortedByLength, until } from "./batches.js";
import type { TestMetrics } from "./label-metrics.js";
import type { Learner } from "./learner.js";
import type { Encoded } from "./tokenizer.js";
import { joined } from "./windows.js";

/** Accuracy from 0 to 1, and the mean loss in nats, of labels. */
export type Score = {
  readonly accuracy: number;
  readonly loss: number;
  /** Number of texts that were too close for halves. */
  readonly close?: number;
};

/** The float32 model that decides close cases. */
export interface Referee<Example extends Encoded> {
  /** The margin of close cases: see `decision()`. */
  readonly margin: number;
  /** Opens the same model in float32. Called at the first close case. */
  readonly open: () => Learner<Example>;
}

export interface ScoreOptions<Example extends Encoded> {
  readonly signal?: AbortSignal | undefined;
  readonly referee?: Referee<Example> | undefined;
  /** Counts the labels. */
  readonly metrics?: TestMetrics | undefined;
}

const batchSize = 64;

/**
 * The score of a model in evaluation mode, for texts in the windows that it reads one by one. The loss is the mean over the labels of all
 * windows. It is always that of the model itself, also where the referee decides close cases.
 */
export async function scoreOf<Example extends Encoded>(
  learner: Learner<Example>,
  texts: readonly (readonly Example[])[],
  { signal, referee, metrics }: ScoreOptions<Example> = {},
): Promise<Score> {
  const answers = new Map<Example, readonly number[]>();
  const close: Example[] = [];
  let [loss, told] = [0, 0];
  for (const batch of until(signal, sortedByLength(texts.flat(), batchSize))) {
    const { answers: given, mean } = await said(learner, batch, referee?.margin);
    for (const [i, { labels, isSure }] of given.entries()) {
      const example = batch[i] as Example;
      answers.set(example, labels);
      if (!isSure) close.push(example);
      loss += labels.length * mean;
      told += labels.length;
    }
  }
  if (referee && close.length > 0) {
    const judge = referee.open();
    for (const batch of until(signal, sortedByLength(close, batchSize)))
      for (const [i, { labels }] of (await said(judge, batch)).answers.entries())
        answers.set(batch[i] as Example, labels);
  }
  let [correct, all] = [0, 0];
  for (const windows of texts.filter((each) => each.every((window) => answers.has(window)))) {
    const wanted = joined(
      windows,
      windows.map((window) => learner.wanted(window)),
    );
    const labels = joined(
      windows,
      windows.map((window) => answers.get(window) ?? []),
    );
    metrics?.add(wanted, labels);
    correct += wanted.filter((label, i) => label === labels[i]).length;
    all += wanted.length;
  }
  const score = { accuracy: correct / all, loss: loss / told };
  if (!referee) return score;
  const unsure = new Set(close);
  return { ...score, close: texts.filter((each) => each.some((part) => unsure.has(part))).length };
}

async function said<Example extends Encoded>(
  learner: Learner<Example>,
  batch: readonly Example[],
  margin?: number,
): Promise<{ readonly answers: readonly Answer[]; readonly mean: number }> {
  const { decided, mean } = await learner.runtime.step(() =>
    noGrad(() => {
      const scores = inPrecision(learner.precision, () => learner.scores(batch));
      return { decided: decision(learner, scores, margin), mean: learner.lossOf(scores, batch) };
    }),
  );
  const answers = await answersOf(learner, decided, batch);
  const result = { answers, mean: await mean.item() };
  for (const tensor of [decided.best, decided.challenged, mean]) tensor?.dispose();
  return result;
}
