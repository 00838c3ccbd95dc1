import { loadTorchStateDict, type Module } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { Classifier } from "./classifier.js";
import { MaskedLearner } from "./masked-lm.js";
import { Tagger } from "./tagger.js";
import type { UsableModel } from "./use-model.js";

/** What a model says of a text. */
export interface Prediction {
  readonly text: string;
  /** A class; a tag for each word; or a token for each mask. */
  readonly labels: readonly string[];
  /** All of it, for people. */
  readonly line: string;
}

/** What a trained model says of texts, in their order. With `half`, parameters and activations are float16. */
export async function predict(
  runtime: Runtime,
  { shape, tokenizer, purpose, state }: UsableModel,
  texts: readonly string[],
  half: boolean,
): Promise<readonly Prediction[]> {
  const { labels, task, crf, maxLength } = purpose;
  const settings = { shape, crf, seed: 0, precision: "float32" };
  const ready = (model: Module): void => {
    loadTorchStateDict(model, state);
    if (half) model.half();
    model.eval();
  };
  if (task === "tags") {
    const tagger = new Tagger(runtime, { ...settings, tags: labels.length });
    ready(tagger.model);
    const sentences = texts.map((text) => text.match(wordOrMark) ?? []);
    const tags = await tagger.predict(
      sentences.map((words) => tokenizer.encodeWords(words, maxLength)),
    );
    return texts.map((text, i) => {
      const names = (tags[i] ?? []).map((tag) => labels[tag] ?? "");
      // Words that were cut off have no tag.
      const line = names.map((tag, word) => `${sentences[i]?.[word]}/${tag}`).join(" ");
      return { text, labels: names, line };
    });
  }
  if (task === "mlm") {
    const learner = new MaskedLearner(runtime, settings);
    ready(learner.model);
    const mask = tokenizer.ids["[MASK]"];
    const told = await learner.predict(
      texts.map((text) => {
        const { ids } = tokenizer.encode(text, maxLength);
        const places = ids.flatMap((id, place) => (id === mask ? [place] : []));
        return { ids, places, hidden: places.map(() => mask) };
      }),
    );
    return texts.map((text, i) => {
      const tokens = (told[i] ?? []).map((id) => tokenizer.vocabulary[id] ?? "");
      let next = 0;
      return {
        text,
        labels: tokens,
        line: text.replaceAll("[MASK]", () => tokens[next++] ?? "[MASK]"),
      };
    });
  }
  const classifier = new Classifier(runtime, { ...settings, classes: labels.length });
  ready(classifier.model);
  const classes = await classifier.predict(texts.map((text) => tokenizer.encode(text, maxLength)));
  return texts.map((text, i) => {
    const label = labels[classes[i] as number] ?? "";
    return { text, labels: [label], line: `${label}\t${text}` };
  });
}

/** What gets a tag of its own: words, and the marks that the Brown corpus parts from them. */
const wordOrMark = /[^\s.,;:!?()"]+|[.,;:!?()"]/g;
