import type { Labelled, Splits, Tagged } from "./examples.js";
import { wordsOf } from "./words.js";

// What simple counting reaches: shown beside what a model does, which has to be worth its cost.

/** Accuracy from 0 to 1, on the test data, of multinomial naive Bayes over words, with one added to each count. */
export function naiveBayes({ train, test }: Splits<Labelled>, classes: number): number {
  const counts = Array.from({ length: classes }, () => new Map<string, number>());
  const totals = new Float64Array(classes);
  const examples = new Float64Array(classes);
  const vocabulary = new Set<string>();
  for (const { text, label } of train) {
    const count = counts[label] as Map<string, number>;
    examples[label] = (examples[label] as number) + 1;
    for (const word of wordsOf(text)) {
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
  const correct = test.filter(({ text, label }) => {
    const words = wordsOf(text).filter((word) => vocabulary.has(word));
    const scores = counts.map((_, each) => scoreOf(words, each));
    return scores.indexOf(Math.max(...scores)) === label;
  });
  return correct.length / test.length;
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

/** Accuracy from 0 to 1 of always giving the class that is most frequent in training. */
export function mostFrequentClass({ train, test }: Splits<Labelled>): number {
  const counts = new Map<number, number>();
  for (const { label } of train) counts.set(label, (counts.get(label) ?? 0) + 1);
  const [[commonest] = [0]] = [...counts].sort(([, a], [, b]) => b - a);
  return test.filter(({ label }) => label === commonest).length / test.length;
}
