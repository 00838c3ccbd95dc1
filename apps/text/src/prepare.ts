import type { BertModel } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import type { RunContext, RunSummary, TrainingPrecision } from "@halfstep/trainer";
import {
  logUnigrams,
  mostFrequentTag,
  naiveBayes,
  naiveBayesScores,
  unigramLoss,
} from "./baseline.js";
import { Classifier } from "./classifier.js";
import type { GivenText, Labelled, MultiLabelled, Splits, Tagged } from "./examples.js";
import { LabelMetrics, LabelSetMetrics, type TestMetrics } from "./label-metrics.js";
import { LabelSetClassifier } from "./label-set-classifier.js";
import type { Learner } from "./learner.js";
import type { LearnerLoss } from "./learner-loss.js";
import {
  bertShare,
  learningShare,
  MaskedLearner,
  type MaskedText,
  type MaskingOptions,
  masked,
} from "./masked-lm.js";
import type { ModelShape } from "./model-shape.js";
import { type Score, type ScoreOptions, scoreOf } from "./score.js";
import { type EncodedSentence, Tagger } from "./tagger.js";
import { dataPackage, type TaskData, trainingTexts } from "./tasks.js";
import { BertTokenizer, type Encoded } from "./tokenizer.js";
import { stepsOf, type TextRun, type TrainingSettings, trainText } from "./train.js";
import { bertVocabulary, restrictedVocabulary } from "./vocabulary.js";
import { windowsOf } from "./windows.js";
import { WordFeatures } from "./word-features.js";

/** The settings of a model of a task. */
export interface ModelSettings extends LearnerLoss {
  readonly shape: ModelShape;
  /** Tokens of a text; the rest is cut off, and tags are those of several windows. */
  readonly maxLength: number;
  /** For classes: whether a bag of words is trained with the model. */
  readonly bag: boolean;
  readonly crf: boolean;
  /** For tags: features of words besides their tokens. */
  readonly features?: WordFeatures | undefined;
  readonly seed: number;
  readonly precision: TrainingPrecision;
}

/** A task with its model and encoded data. */
export interface PreparedTask {
  readonly learner: Learner<Encoded>;
  readonly model: Module & { readonly bert: BertModel };
  /** Number of training examples of an epoch. */
  readonly examples: number;
  steps(settings: TrainingSettings & Pick<RunContext, "job">): number;
  /** Counts of a test; undefined where there are no labels. */
  newMetrics(): TestMetrics | undefined;
  train(run: Omit<TextRun<Encoded>, "learner" | "train" | "test">): Promise<RunSummary | undefined>;
  /** On the test data. */
  evaluate(options?: ScoreOptions<Encoded>): Promise<Score>;
}

/** A tokenizer with the tokens of BERT base that the training data have `leastCount` times. */
export async function tokenizerFor(data: TaskData, leastCount: number): Promise<BertTokenizer> {
  const all = await bertVocabulary(await dataPackage("vocabulary"));
  const tokenizerOf = (vocabulary: readonly string[]) => {
    const tokenizer = new BertTokenizer(vocabulary);
    return (text: string) => tokenizer.tokenize(text);
  };
  return new BertTokenizer(restrictedVocabulary(all, trainingTexts(data), leastCount, tokenizerOf));
}

/** Features of words that occur at least `leastCount` times in the training data; for tags only. */
export const featuresFor = (data: TaskData, leastCount: number): WordFeatures | undefined =>
  data.kind === "tags"
    ? WordFeatures.of(
        data.splits.train.map(({ words }) => words),
        leastCount,
      )
    : undefined;

/** Makes the model of a task, and encodes its training and test data. */
export function prepareTask(
  runtime: Runtime,
  data: TaskData,
  tokenizer: BertTokenizer,
  settings: ModelSettings,
): PreparedTask {
  const { maxLength } = settings;
  if (data.kind === "classes") {
    const encode = ({ label, ...text }: Labelled) => ({
      ...encodeText(text, tokenizer, maxLength),
      label,
    });
    const [train, test] = [data.splits.train.map(encode), data.splits.test.map(encode)];
    const classes = data.labels.length;
    const tokenScores = settings.bag
      ? naiveBayesScores(train, classes, tokenizer.vocabulary.length)
      : undefined;
    return prepared(
      new Classifier(runtime, { ...settings, classes, tokenScores }),
      always(train),
      test.map(whole),
      () => new LabelMetrics(data.labels),
    );
  }
  if (data.kind === "labels") {
    const encode = ({ labels, ...text }: MultiLabelled) => ({
      ...encodeText(text, tokenizer, maxLength),
      flags: data.labels.map((_, label) => (labels.includes(label) ? 1 : 0)),
    });
    return prepared(
      new LabelSetClassifier(runtime, { ...settings, classes: data.labels.length }),
      always(data.splits.train.map(encode)),
      data.splits.test.map(encode).map(whole),
      () => new LabelSetMetrics(data.labels),
    );
  }
  if (data.kind === "tags") {
    const encode = (sentence: Tagged) => encodeTagged(sentence, tokenizer, settings);
    const learner = new Tagger(runtime, { ...settings, tags: data.labels.length });
    return prepared(
      learner,
      always(data.splits.train.flatMap(encode)),
      data.splits.test.map(encode),
      () => new LabelMetrics(data.labels),
    );
  }
  const { train, test, hide } = maskedSplits(data.splits, tokenizer, maxLength);
  const unigrams = logUnigrams(train, tokenizer.vocabulary.length);
  const { seed } = settings;
  const hidden = (epoch: number) => ({ ...hide, seed, epoch, share: learningShare });
  return prepared(
    new MaskedLearner(runtime, { ...settings, unigrams }),
    latest((epoch) => train.map((text, i) => masked(text, i, hidden(epoch)))),
    test.map(whole),
  );
}

/** The baselines by counting words, tags or tokens on the same data, by the name of the method: accuracies from 0 to 1, or losses. */
export function baselinesOf(
  data: TaskData,
  tokenizer: BertTokenizer,
  maxLength: number,
): Readonly<Record<string, number>> {
  if (data.kind === "classes") return { naiveBayes: naiveBayes(data.splits, data.labels.length) };
  if (data.kind === "labels") return {};
  if (data.kind === "tags")
    return { mostFrequentTag: mostFrequentTag(data.splits, data.labels.length) };
  const { train, test } = maskedSplits(data.splits, tokenizer, maxLength);
  return { unigramLoss: unigramLoss(logUnigrams(train, tokenizer.vocabulary.length), test) };
}

/** Texts as tokens. Hidden tokens of the test data are fixed, the same for all models. */
function maskedSplits(
  splits: Splits<string>,
  tokenizer: BertTokenizer,
  maxLength: number,
): {
  readonly train: readonly Encoded[];
  readonly test: readonly MaskedText[];
  readonly hide: Pick<MaskingOptions, "mask" | "vocabSize">;
} {
  const hide = { mask: tokenizer.ids["[MASK]"], vocabSize: tokenizer.vocabulary.length };
  const [train, test] = [splits.train, splits.test].map((texts) =>
    texts
      .map((text) => tokenizer.encode(text, maxLength))
      // A text without a token has nothing to hide.
      .filter(({ ids }) => ids.length > 2),
  ) as [Encoded[], Encoded[]];
  const tested = { ...hide, seed: 0, epoch: 2 ** 32 - 1, share: bertShare };
  return {
    train,
    test: test.map((text, i) => masked(text, i, tested)),
    hide,
  };
}

/** A text, or a pair, as far as it fits. */
export const encodeText = (
  { text, pair }: GivenText,
  tokenizer: BertTokenizer,
  maxLength: number,
): Encoded =>
  pair === undefined
    ? tokenizer.encode(text, maxLength)
    : tokenizer.encodePair(text, pair, maxLength);

/** The windows of a sentence, and the tags of their words. */
const encodeTagged = (
  { words, tags, context }: Tagged,
  tokenizer: BertTokenizer,
  settings: ModelSettings,
): readonly EncodedSentence[] =>
  windowsOf(words, tokenizer, { ...settings, context }).map((window) => {
    const { first = 0, starts } = window;
    return { ...window, tags: tags.slice(first, first + starts.length) };
  });

/** A text that a model reads at once. */
const whole = <Example>(text: Example): readonly Example[] => [text];

/** A function of the epoch that keeps its last result. */
function latest<T>(make: (epoch: number) => T): (epoch: number) => T {
  let last: { readonly epoch: number; readonly value: T } | undefined;
  return (epoch) => {
    if (last?.epoch !== epoch) last = { epoch, value: make(epoch) };
    return last.value;
  };
}

const always =
  <T>(value: T) =>
  (): T =>
    value;

const prepared = <Example extends Encoded>(
  learner: Learner<Example>,
  train: (epoch: number) => readonly Example[],
  test: readonly (readonly Example[])[],
  newMetrics: () => TestMetrics | undefined = () => undefined,
): PreparedTask => ({
  learner,
  model: learner.model,
  examples: train(0).length,
  steps: (settings) => stepsOf(train(0).length, settings),
  newMetrics,
  train: (run) => trainText({ ...run, learner, train, test }),
  evaluate: (options) => scoreOf(learner, test, options),
});
