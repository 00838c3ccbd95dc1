import { permutation, stratifiedSample } from "@halfstep/data";

/** A text, or a pair of two. */
export interface GivenText {
  readonly text: string;
  /** The second text of a pair, such as the hypothesis behind a premise. */
  readonly pair?: string | undefined;
}

/** A text and its class. */
export interface Labelled extends GivenText {
  /** Place in the names of the classes. */
  readonly label: number;
}

/** A text and its labels, of which it may have any number. */
export interface MultiLabelled extends GivenText {
  /** Places in the names of the labels. */
  readonly labels: readonly number[];
}

/** A sentence and the tag of each of its words. */
export interface Tagged {
  readonly words: readonly string[];
  /** Places in the names of the tags, one a word. */
  readonly tags: readonly number[];
  /** The sentences around it. Default: none. */
  readonly context?: SentenceContext | undefined;
}

/** The sentences of a document, and the place of one of them. */
export interface SentenceContext {
  readonly sentences: readonly (readonly string[])[];
  readonly place: number;
}

export interface Splits<Example> {
  readonly train: readonly Example[];
  readonly test: readonly Example[];
}

/** Number of folds of cross-validation. */
export const folds = 5;

/**
 * One of five splits; each example is tested in exactly one. The order does not depend on a model's seed, so that models are compared
 * on the same examples.
 */
export function splitOf<Example>(examples: readonly Example[], fold: number): Splits<Example> {
  const order = [...permutation(examples.length, 0, 0)];
  const part = (isTest: boolean): Example[] =>
    order.flatMap((index, i) =>
      (i % folds === fold) === isTest ? [examples[index] as Example] : [],
    );
  return { train: part(false), test: part(true) };
}

/**
 * At most `limit` examples of a file, from all of it and with the classes in their proportions. Like the splits, the sample does not
 * depend on a model's seed.
 */
export function sampleOf<Example>(
  examples: readonly Example[],
  limit: number | undefined,
): readonly Example[] {
  if (limit === undefined || limit >= examples.length) return examples;
  const places = stratifiedSample(examples.map(classOf), limit, 0);
  return Array.from(places, (place) => examples[place] as Example);
}

/** The class for proportional samples: texts have their class; tagged sentences and unlabelled texts share one. */
const classOf = (example: unknown): number => {
  const { label } = example as Partial<Labelled>;
  return label ?? 0;
};

/** Samples of both parts: at most `limit` to train on, and as many to test on. */
export const limited = <Example>(
  { train, test }: Splits<Example>,
  limit: number | undefined,
): Splits<Example> => ({ train: sampleOf(train, limit), test: sampleOf(test, limit) });
