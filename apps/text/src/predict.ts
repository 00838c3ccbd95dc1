import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import { Predictor } from "@halfstep/trainer";
import { type Answer, answersOf, closeMargin, type Decision, decision } from "./answers.js";
import type { GivenText } from "./examples.js";
import type { MaskedText } from "./masked-lm.js";
import { encodeText } from "./prepare.js";
import type { Encoded } from "./tokenizer.js";
import { type UsableModel, useModel } from "./use-model.js";
import { joined, windowsOf } from "./windows.js";

/** The prediction of a model for a text. */
export interface Prediction {
  readonly text: string;
  /** A class; labels; a tag for each word; or a token for each mask. */
  readonly labels: readonly string[];
  /** All of it, for people. */
  readonly line: string;
  /** In halves: whether it was close, and was decided in float32. */
  readonly close?: boolean;
}

export interface PredictOptions {
  readonly runtime: Runtime;
  readonly device?: Device | undefined;
  readonly saved: UsableModel;
  /** Store parameters and compute in float16, which changes no label: close cases are decided again in float32. */
  readonly half: boolean;
  /** The margin of close cases: see `decision()`. Default: {@link closeMargin}. */
  readonly margin?: number | undefined;
}

/** The predictions of a trained model for texts, in their order. */
export async function predict(
  options: PredictOptions,
  texts: readonly string[],
): Promise<readonly Prediction[]> {
  const { saved, half } = options;
  const { encode, namesOf, lineOf } = readerOf(saved);
  // Texts without hidden tokens need no prediction.
  const isAsked = (sequence: Encoded | MaskedText) =>
    !("places" in sequence) || sequence.places.length > 0;
  const windows = encode(texts).map((each) => each.filter(isAsked));
  const answers = (await decide(options, windows.flat())).values();
  return texts.map((text, i) => {
    const asked = windows[i] ?? [];
    const given = asked.map(() => answers.next().value as Answer);
    const labels = namesOf(
      joined(
        asked,
        given.map((answer) => answer.labels),
      ),
    );
    const prediction = { text, labels, line: lineOf(text, labels) };
    return half ? { ...prediction, close: given.some(({ isSure }) => !isSure) } : prediction;
  });
}

/** Decides in the requested precision, and decides close cases of halves again in float32. */
async function decide(
  options: PredictOptions,
  sequences: readonly Encoded[],
): Promise<readonly Answer[]> {
  const { half, margin = closeMargin } = options;
  const answers = await answersIn(half, options, sequences, half ? margin : undefined);
  const close = sequences.filter((_, i) => !answers[i]?.isSure);
  if (close.length === 0) return answers;
  const again = (await answersIn(false, options, close)).values();
  return answers.map((answer) =>
    answer.isSure ? answer : { ...(again.next().value as Answer), isSure: false },
  );
}

async function answersIn(
  half: boolean,
  { runtime, device, saved }: PredictOptions,
  sequences: readonly Encoded[],
  margin?: number,
): Promise<readonly Answer[]> {
  const { learner } = useModel(runtime, saved, half);
  const { model } = learner;
  try {
    using predictor = new Predictor<Encoded, Decision, Answer>({
      ...{ runtime, device, model, batchSize: 64 },
      forward: (batch) => decision(learner, learner.scores(batch), margin),
      read: (decided, batch) => answersOf(learner, decided, batch),
    });
    return await predictor.predict(sequences);
  } finally {
    // Parameters in halves and in float32 are never on the device together.
    for (const [, variable] of model.namedVariables()) variable.dispose();
  }
}

/** Converts texts of a task to sequences, and labels to text. */
interface Reader {
  /** The windows of each text that a model reads one by one. */
  readonly encode: (texts: readonly string[]) => readonly (readonly Encoded[])[];
  readonly namesOf: (labels: readonly number[]) => readonly string[];
  readonly lineOf: (text: string, labels: readonly string[]) => string;
}

function readerOf({ purpose, tokenizer, features }: UsableModel): Reader {
  const { task, maxLength, labels, multiLabel, pairs, documentContext } = purpose;
  const namesOf = (given: readonly number[]): readonly string[] =>
    given.map((label) => labels[label] as string);
  if (task === "tags")
    return {
      encode(texts) {
        const sentences = texts.map(wordsIn);
        return sentences.map((words, place) =>
          windowsOf(words, tokenizer, {
            ...{ maxLength, features },
            // The texts are a document.
            ...(documentContext && { context: { sentences, place } }),
          }),
        );
      },
      namesOf,
      lineOf(text, tags) {
        const words = wordsIn(text);
        return tags.map((tag, i) => `${words[i]}/${tag}`).join(" ");
      },
    };
  if (task === "mlm")
    return {
      encode: (texts) =>
        texts.map((text): readonly MaskedText[] => {
          const { ids } = tokenizer.encode(text, maxLength);
          const mask = tokenizer.ids["[MASK]"];
          return [{ ids, places: ids.flatMap((id, i) => (id === mask ? [i] : [])), hidden: [] }];
        }),
      namesOf: (tokens) => tokens.map((token) => tokenizer.vocabulary[token] as string),
      lineOf(text, tokens) {
        const given = tokens.values();
        return text.replaceAll("[MASK]", (mask) => given.next().value ?? mask);
      },
    };
  return {
    encode: (texts) =>
      texts.map((line) => [
        encodeText(pairs ? pairIn(line) : { text: line }, tokenizer, maxLength),
      ]),
    namesOf: multiLabel ? (flags) => labels.filter((_, label) => flags[label] === 1) : namesOf,
    lineOf: (text, names) => `${names.join(",")}\t${text}`,
  };
}

/** The two texts of a line, with a tab between them; a line without one is one text. */
function pairIn(line: string): GivenText {
  const [text = "", pair] = line.split("\t");
  return { text, pair };
}

/** The units with a tag: words, and the punctuation that the Brown corpus separates from them. */
export const wordsIn = (text: string): readonly string[] =>
  text.match(/[^\s.,;:!?()"]+|[.,;:!?()"]/g) ?? [];
