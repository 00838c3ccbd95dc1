import type { SentenceContext } from "./examples.js";
import type { BertTokenizer, Encoded, EncodedWords } from "./tokenizer.js";
import type { WordFeatures } from "./word-features.js";

/** The share of a window's words that the next window has, too: each of them has context on both sides in one of the two. */
const shared = 1 / 4;

/** What sentences are encoded with. */
export interface WindowsOptions {
  /** Tokens of a window. */
  readonly maxLength: number;
  /** Features of words besides their tokens. */
  readonly features?: WordFeatures | undefined;
  /** The sentences around it. */
  readonly context?: SentenceContext | undefined;
}

/** A sentence as a model takes it: one window, or several where it has more tokens than a model reads at once. */
export function windowsOf(
  words: readonly string[],
  tokenizer: BertTokenizer,
  { maxLength, features, context }: WindowsOptions,
): readonly EncodedWords[] {
  const known = features?.encode(words);
  const windows: EncodedWords[] = [];
  for (let first = 0; ; ) {
    const window = tokenizer.encodeWords(words, maxLength, { first, context });
    const count = window.starts.length;
    windows.push({ ...window, first, features: known?.slice(first, first + count) });
    if (first + count >= words.length) return windows;
    first += Math.ceil(count * (1 - shared));
  }
}

/**
 * The labels of a text from those of its windows. Of the words that two windows share, the first half has the labels of the first
 * window, and the rest those of the second: each word those of the window in which it has more context.
 */
export function joined(
  windows: readonly Encoded[],
  labels: readonly (readonly number[])[],
): readonly number[] {
  const all: number[] = [];
  for (const [i, { first = 0 }] of windows.entries()) {
    const from = first + Math.floor((all.length - first) / 2);
    all.length = from;
    all.push(...(labels[i] ?? []).slice(from - first));
  }
  return all;
}
