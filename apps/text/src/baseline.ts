import type { EncodedText } from "./classifier.js";
import type { GivenText, Labelled, Splits, Tagged } from "./examples.js";
import type { MaskedText } from "./masked-lm.js";
import type { Encoded } from "./tokenizer.js";
import { wordsOf } from "./words.js";

// Baselines by counting, shown next to a model's scores.

/** Accuracy from 0 to 1, on the test data, of multinomial naive Bayes over words, with one added to each count. */
export function naiveBayes({ train, test }: Splits<Labelled>, classes: number): number {
  const counts = Array.from({ length: classes }, () => new Map<string, number>());
  const totals = new Float64Array(classes);
  const examples = new Float64Array(classes);
  const vocabulary = new Set<string>();
  for (const { label, ...each } of train) {
    const count = counts[label] as Map<string, number>;
    examples[label] = (examples[label] as number) + 1;
    for (const word of wordsOf(wholeOf(each))) {
      vocabulary.add(word);
      totals[label] = (totals[label] as number) + 1;
      count.set(word, (count.get(word) ?? 0) + 1);
    }
  }
  const scoreOf = (words: readonly string[], label: number): number => {
    const total = (totals[label] as number) + vocabulary.size;
    const seen = counts[label] as Map<string, number>;
    return words.reduce(
      (sum, word) => sum + Math.log(((seen.get(word) ?? 0) + 1) / total),
      Math.log(examples[label] as number),
    );
  };
  const correct = test.filter(({ label, ...each }) => {
    const words = wordsOf(wholeOf(each)).filter((word) => vocabulary.has(word));
    const scores = counts.map((_, each) => scoreOf(words, each));
    return scores.indexOf(Math.max(...scores)) === label;
  });
  return correct.length / test.length;
}

/** All words of a text, or of a pair. */
const wholeOf = ({ text, pair }: GivenText): string =>
  pair === undefined ? text : `${text} ${pair}`;

/**
 * The scores of naive Bayes for tokens: log p(token | class), with one added to each count, minus its mean over classes; for
 * the first token of each text, the frequency of the class. [vocabSize, classes], row by row. A bag of words that begins with
 * it is Wang and Manning's (2012).
 */
export function naiveBayesScores(
  train: readonly EncodedText[],
  classes: number,
  vocabSize: number,
): Float32Array {
  const counts = new Float64Array(vocabSize * classes).fill(1);
  const totals = new Float64Array(classes).fill(vocabSize);
  const examples = new Float64Array(classes);
  const begin = train[0]?.ids[0];
  for (const { ids, label } of train) {
    examples[label] = (examples[label] as number) + 1;
    for (const token of ids.slice(1, -1)) {
      counts[token * classes + label] = (counts[token * classes + label] as number) + 1;
      totals[label] = (totals[label] as number) + 1;
    }
  }
  const scores = new Float32Array(vocabSize * classes);
  for (let token = 0; token < vocabSize; token++) {
    const row = [...counts.subarray(token * classes, (token + 1) * classes)];
    // Tokens outside the training data have score 0, independent of the totals.
    if (token !== begin && row.every((count) => count === 1)) continue;
    const logs = row.map((count, label) =>
      token === begin
        ? Math.log((examples[label] as number) + 1)
        : Math.log(count / (totals[label] as number)),
    );
    const mean = logs.reduce((sum, log) => sum + log, 0) / classes;
    scores.set(
      logs.map((log) => log - mean),
      token * classes,
    );
  }
  return scores;
}

/** Accuracy from 0 to 1, on the words of the test data, of giving each word the tag that it has most often. */
export function mostFrequentTag({ train, test }: Splits<Tagged>, tags: number): number {
  const counts = new Map<string, Uint32Array>();
  const all = new Uint32Array(tags);
  for (const { words, tags: given } of train)
    for (const [i, word] of words.entries()) {
      const count = counts.get(word) ?? new Uint32Array(tags);
      counts.set(word, count);
      const tag = given[i] as number;
      count[tag] = (count[tag] as number) + 1;
      all[tag] = (all[tag] as number) + 1;
    }
  const best = (count: Uint32Array): number => count.indexOf(Math.max(...count));
  let correct = 0;
  let total = 0;
  for (const { words, tags: given } of test)
    for (const [i, word] of words.entries()) {
      if (best(counts.get(word) ?? all) === given[i]) correct++;
      total++;
    }
  return correct / total;
}

/** log p of each token, [vocabSize], by how often training has it, with one added to each count. */
export function logUnigrams(train: readonly Encoded[], vocabSize: number): Float64Array {
  const counts = new Float64Array(vocabSize).fill(1);
  // Neither [CLS] nor [SEP] is ever hidden.
  const given = train.flatMap(({ ids }) => ids.slice(1, -1));
  for (const token of given) counts[token] = (counts[token] as number) + 1;
  const total = Math.log(given.length + vocabSize);
  return counts.map((count) => Math.log(count) - total);
}

/** Nats for each hidden token, of telling tokens by how often training has them. */
export function unigramLoss(unigrams: Float64Array, test: readonly MaskedText[]): number {
  const losses = test.flatMap(({ hidden }) => hidden.map((token) => -(unigrams[token] as number)));
  return losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
}

/** Accuracy from 0 to 1 of always giving the class that is most frequent in training. */
export function mostFrequentClass({ train, test }: Splits<Labelled>): number {
  const counts = new Map<number, number>();
  for (const { label } of train) counts.set(label, (counts.get(label) ?? 0) + 1);
  const [[commonest] = [0]] = [...counts].sort(([, a], [, b]) => b - a);
  return test.filter(({ label }) => label === commonest).length / test.length;
}
