import { readFile } from "node:fs/promises";
import { DataError } from "@halfstep/data";

/** How many features a word has. */
export const featuresPerWord = 5;

/**
 * What tells the tag of a word besides its tokens: how it is spelt, and which words stand beside it. Each word has one feature of each
 * kind: capitals and digits, its last two letters, its last three to five, the word before and the word behind. Of the last three
 * it is the most precise one that training has seen often enough: of a rare word beside it, its ending.
 */
export class WordFeatures {
  /** Place 0 is for features that are not known, and for what is no word. */
  readonly names: readonly string[];
  readonly #places: ReadonlyMap<string, number>;

  constructor(names: readonly string[]) {
    this.names = names;
    this.#places = new Map(names.map((name, place) => [name, place]));
  }

  /** The features that the words of some sentences have at least so often. */
  static of(sentences: Iterable<readonly string[]>, least: number): WordFeatures {
    const counts = new Map<string, number>();
    for (const words of sentences)
      for (const place of words.keys())
        for (const name of candidates(words, place).flat())
          counts.set(name, (counts.get(name) ?? 0) + 1);
    const often = [...counts].flatMap(([name, count]) => (count >= least ? [name] : []));
    return new WordFeatures([unknown, ...often.sort()]);
  }

  /** The features of the words of a sentence, {@link featuresPerWord} each, as places in `names`. */
  encode(words: readonly string[]): readonly (readonly number[])[] {
    return words.map((_, place) =>
      candidates(words, place).map((names) => {
        const known = names.find((name) => this.#places.has(name));
        return known === undefined ? 0 : (this.#places.get(known) as number);
      }),
    );
  }
}

const unknown = "[NONE]";

/** The names of the features that a word may have: for each kind, the most precise first. */
function candidates(words: readonly string[], place: number): readonly (readonly string[])[] {
  const word = words[place] as string;
  const small = word.toLowerCase();
  const beside = (mark: string, other: string | undefined): readonly string[] => {
    const name = other?.toLowerCase() ?? "";
    return [`${mark}${name}`, ...[3, 2].map((count) => `${mark}~${name.slice(-count)}`)];
  };
  return [
    [`shape ${shapeOf(word)}`],
    [`~${small.slice(-2)}`],
    [5, 4, 3].filter((count) => small.length > count).map((count) => `~${small.slice(-count)}`),
    beside("before ", words[place - 1]),
    beside("behind ", words[place + 1]),
  ];
}

/** Of capitals, digits, hyphens and apostrophes, what a word has: `Xx`, `XX`, `9`, `-`, `'`. */
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

/** The features in a file of one name a line, or undefined where there is no such file. */
export async function readFeatures(path: string): Promise<WordFeatures | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new DataError(path, `cannot be read (${error.code ?? error.message})`);
  });
  if (text === undefined) return undefined;
  const names = text.replace(/\n$/, "").split("\n");
  if (names[0] !== unknown) throw new DataError(path, `does not begin with ${unknown}`);
  return new WordFeatures(names);
}
