import type { Device } from "@halfstep/device";
import type { Module } from "@halfstep/nn";
import { argmax, type Runtime, type Tensor } from "@halfstep/tensor";
import { Predictor } from "@halfstep/trainer";
import { Classifier } from "./classifier.js";
import { MaskedLearner, type MaskedText } from "./masked-lm.js";
import { loadParameters } from "./model-folder.js";
import { Tagger } from "./tagger.js";
import type { EncodedWords } from "./tokenizer.js";
import type { UsableModel } from "./use-model.js";

/** What a model says of a text. */
export interface Prediction {
  readonly text: string;
  /** A class; a tag for each word; or a token for each mask. */
  readonly labels: readonly string[];
  /** All of it, for people. */
  readonly line: string;
}

export interface PredictOptions {
  readonly runtime: Runtime;
  readonly device?: Device | undefined;
  readonly saved: UsableModel;
  /** Store parameters and compute in float16. What must not be half, the field of tags, stays float32. */
  readonly half: boolean;
}

/** What a trained model says of texts, in their order. */
export async function predict(
  options: PredictOptions,
  texts: readonly string[],
): Promise<readonly Prediction[]> {
  const { task } = options.saved.purpose;
  if (task === "tags") return predictTags(options, texts);
  if (task === "mlm") return predictHidden(options, texts);
  return predictClasses(options, texts);
}

const settingsOf = ({ shape, purpose }: UsableModel) => ({
  shape,
  crf: purpose.crf,
  seed: 0,
  precision: "float32",
});

const batchSize = 64;

/** Gives a model its parameters, in float32 or in halves. */
function ready(model: Module, { saved, half }: PredictOptions): void {
  loadParameters(model, saved);
  // The predictor computes as the parameters are stored.
  if (half) model.half();
}

async function predictClasses(
  options: PredictOptions,
  texts: readonly string[],
): Promise<readonly Prediction[]> {
  const { runtime, device, saved } = options;
  const { tokenizer, purpose } = saved;
  const { labels, maxLength } = purpose;
  const classifier = new Classifier(runtime, {
    ...{ ...settingsOf(saved), classes: labels.length },
    // The scores that were learnt replace these.
    tokenScores: purpose.bag ? new Float32Array(saved.shape.vocabSize * labels.length) : undefined,
  });
  ready(classifier.model, options);
  using predictor = new Predictor({
    ...{ runtime, device, batchSize, model: classifier.model },
    forward: (batch: readonly string[]) =>
      argmax([classifier.logits(batch.map((text) => tokenizer.encode(text, maxLength)))], null),
  });
  const classes = await predictor.predict(texts);
  return texts.map((text, i) => {
    const label = labels[classes[i]?.[0] as number] as string;
    return { text, labels: [label], line: `${label}\t${text}` };
  });
}

async function predictTags(
  options: PredictOptions,
  texts: readonly string[],
): Promise<readonly Prediction[]> {
  const { runtime, device, saved } = options;
  const { tokenizer, features, purpose } = saved;
  const { labels, maxLength } = purpose;
  const tagger = new Tagger(runtime, { ...settingsOf(saved), features, tags: labels.length });
  ready(tagger.model, options);
  using predictor = new Predictor({
    ...{ runtime, device, batchSize, model: tagger.model },
    forward: (batch: readonly EncodedWords[]) => tagger.tagsOf(tagger.emissions(batch)),
  });
  const sentences = texts.map((text) => text.match(wordOrMark) ?? []);
  const tags = await predictor.predict(
    sentences.map((words) => tokenizer.encodeWords(words, maxLength, features)),
  );
  return texts.map((text, i) => {
    const words = sentences[i] ?? [];
    // Words that were cut off have no tag, and padding has one that means nothing.
    const kept = tokenizer.encodeWords(words, maxLength).starts.length;
    const names = [...(tags[i] ?? [])].slice(0, kept).map((tag) => labels[tag] as string);
    return { text, labels: names, line: names.map((name, j) => `${words[j]}/${name}`).join(" ") };
  });
}

/** What gets a tag of its own: words, and the marks that the Brown corpus parts from them. */
const wordOrMark = /[^\s.,;:!?()"]+|[.,;:!?()"]/g;

async function predictHidden(
  options: PredictOptions,
  texts: readonly string[],
): Promise<readonly Prediction[]> {
  const { runtime, device, saved } = options;
  const { tokenizer, purpose } = saved;
  const learner = new MaskedLearner(runtime, settingsOf(saved));
  ready(learner.model, options);
  using predictor = new Predictor({
    ...{ runtime, device, batchSize, model: learner.model },
    forward: (batch: readonly MaskedText[]) => argmax([learner.logits(batch)], null),
    read: async (told: Tensor, batch) => {
      const tokens = [...(await told.toArray())];
      return batch.map(({ places }) => tokens.splice(0, places.length));
    },
  });
  const encoded = texts.map((text): MaskedText => {
    const { ids } = tokenizer.encode(text, purpose.maxLength);
    const mask = tokenizer.ids["[MASK]"];
    return { ids, places: ids.flatMap((id, i) => (id === mask ? [i] : [])), hidden: [] };
  });
  const told = await predictor.predict(encoded.filter(({ places }) => places.length > 0));
  const next = told.values();
  return texts.map((text, i) => {
    const tokens = encoded[i]?.places.length ? (next.next().value ?? []) : [];
    const labels = tokens.map((id) => tokenizer.vocabulary[id] as string);
    const given = labels.values();
    return { text, labels, line: text.replaceAll("[MASK]", (mask) => given.next().value ?? mask) };
  });
}
