import { noGrad } from "@halfstep/tensor";
import { inPrecision } from "@halfstep/trainer";
import { type Answer, answersOf, decision } from "./answers.js";
import { sortedByLength, until } from "./batches.js";
import type { TestMetrics } from "./label-metrics.js";
import type { Learner } from "./learner.js";
import type { Encoded } from "./tokenizer.js";

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
 * The score of a model in evaluation mode. The loss is always that of the model itself, also where the referee decides
 * close cases.
 */
export async function scoreOf<Example extends Encoded>(
  learner: Learner<Example>,
  examples: readonly Example[],
  { signal, referee, metrics }: ScoreOptions<Example> = {},
): Promise<Score> {
  const close: Example[] = [];
  let [correct, labels, loss, told] = [0, 0, 0, 0];
  const count = (answers: readonly Answer[], batch: readonly Example[]): void => {
    for (const [i, example] of batch.entries()) {
      const wanted = learner.wanted(example);
      metrics?.add(wanted, answers[i]?.labels ?? []);
      correct += wanted.filter((label, j) => label === answers[i]?.labels[j]).length;
    }
  };
  for (const batch of until(signal, sortedByLength(examples, batchSize))) {
    const { answers, mean } = await said(learner, batch, referee?.margin);
    const isSure = (_: unknown, i: number) => answers[i]?.isSure === true;
    count(answers.filter(isSure), batch.filter(isSure));
    close.push(...batch.filter((_, i) => !answers[i]?.isSure));
    const given = answers.reduce((sum, answer) => sum + answer.labels.length, 0);
    labels += batch.reduce((sum, example) => sum + learner.wanted(example).length, 0);
    loss += given * mean;
    told += given;
  }
  if (referee && close.length > 0) {
    const judge = referee.open();
    for (const batch of until(signal, sortedByLength(close, batchSize)))
      count((await said(judge, batch)).answers, batch);
  }
  const score = { accuracy: correct / labels, loss: loss / told };
  return referee ? { ...score, close: close.length } : score;
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
