import { existsSync } from "node:fs";
import { DataError } from "@halfstep/data";
import { readTextFile } from "@halfstep/data/node";

/** The number of features of a word. */
export const featuresPerWord = 5;

/**
 * The features of a word besides its tokens that help to predict its tag: its spelling and its neighbours. Each word has one feature
 * of each kind: capitals and digits, its last two letters, its last three to five, the word before and the word behind. Of the last
 * three it is the most precise one that training has seen often enough: of a rare word beside it, its ending.
 */
export class WordFeatures {
  /** Index 0 stands for unknown features, and for tokens that are no words. */
  readonly names: readonly string[];
  readonly #places: ReadonlyMap<string, number>;
  /** Of words that have been seen, by mark and word. */
  readonly #known = new Map<string, readonly number[]>();

  constructor(names: readonly string[]) {
    this.names = names;
    this.#places = new Map(names.map((name, place) => [name, place]));
  }

  /** The features that the words of some sentences have at least so often. */
  static of(sentences: Iterable<readonly string[]>, least: number): WordFeatures {
    const seen = new Map<string, number>();
    for (const words of sentences)
      for (const place of words.keys())
        for (const each of views(words, place)) seen.set(each, (seen.get(each) ?? 0) + 1);
    const counts = new Map<string, number>();
    for (const [view, times] of seen)
      for (const name of candidates(view).flat()) counts.set(name, (counts.get(name) ?? 0) + times);
    const often = [...counts].flatMap(([name, count]) => (count >= least ? [name] : []));
    return new WordFeatures([unknown, ...often.sort()]);
  }

  /** The features of the words of a sentence, {@link featuresPerWord} each, as places in `names`. */
  encode(words: readonly string[]): readonly (readonly number[])[] {
    return words.map((_, place) => views(words, place).flatMap((view) => this.#featuresOf(view)));
  }

  #featuresOf(view: string): readonly number[] {
    const known = this.#known.get(view);
    if (known) return known;
    const features = candidates(view).map((names) => {
      const name = names.find((each) => this.#places.has(each));
      return name === undefined ? 0 : (this.#places.get(name) as number);
    });
    this.#known.set(view, features);
    return features;
  }
}

const unknown = "[NONE]";

/** A word, the one before it and the one behind it: `=Word`, `<word`, `>word`. Features of each depend on nothing else. */
const views = (words: readonly string[], place: number): readonly string[] => [
  `=${words[place]}`,
  `<${words[place - 1]?.toLowerCase() ?? ""}`,
  `>${words[place + 1]?.toLowerCase() ?? ""}`,
];

/** The names of the features that a view may have: for each kind, the most precise first. */
function candidates(view: string): readonly (readonly string[])[] {
  const [mark, word] = [view.slice(0, 1), view.slice(1)];
  const ending = (count: number): string => `${mark}~${word.toLowerCase().slice(-count)}`;
  if (mark !== "=") return [[view, ending(3), ending(2)]];
  const long = [5, 4, 3].filter((count) => word.length > count);
  return [[`shape ${shapeOf(word)}`], [ending(2)], long.map(ending)];
}

/** The capitals, digits, hyphens and apostrophes of a word, as marks: `Xx`, `XX`, `9`, `-`, `'`. */
function shapeOf(word: string): string {
  const isCapital = /^\p{Lu}/u.test(word);
  const isAllCapitals = word.length > 1 && !/\p{Ll}/u.test(word);
  return [
    isCapital ? (isAllCapitals ? "XX" : "Xx") : "",
    /\d/.test(word) ? "9" : "",
    word.includes("-") ? "-" : "",
    word.includes("'") ? "'" : "",
  ].join("");
}

/** The features in a file with one name on each line, or undefined where there is no such file. */
export async function readFeatures(path: string): Promise<WordFeatures | undefined> {
  if (!existsSync(path)) return undefined;
  const text = await readTextFile(path);
  const names = text.replace(/\n$/, "").split("\n");
  if (names[0] !== unknown) throw new DataError(path, `does not begin with ${unknown}`);
  return new WordFeatures(names);
}
