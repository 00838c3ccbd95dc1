import { learnMerges, type Merge } from "./merges.js";
import type { TokenizerJson } from "./subwords.js";
import { wordsOf } from "./words.js";

/**
 * GPT-2's byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), which can encode every text. Merges are learnt
 * from a text until there are as many tokens, the 256 bytes included, or no pair is left.
 */
export function learnBytePairs(text: string, vocabSize: number): TokenizerJson {
  const counts = new Map<string, number>();
  for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const words = [...counts].map(([word, count]) => ({ symbols: spell(word), count }));
  return bytePairs(learnMerges(words, vocabSize - byteSymbols.length));
}

const bytePairs = (merges: readonly Merge[]): TokenizerJson =>
  byteLevel(
    Object.fromEntries(
      [...byteSymbols, ...merges.map((pair) => pair.join(""))].map((token, id) => [token, id]),
    ),
    merges.map((pair) => [...pair]),
  );

/**
 * The `tokenizer.json` of byte pairs like GPT-2's.
 * @param vocab ids by token: what is in GPT-2's `vocab.json`
 * @param merges pairs, or lines of GPT-2's `merges.txt`
 */
export const byteLevel = (
  vocab: TokenizerJson["model"]["vocab"],
  merges: readonly (string | readonly string[])[],
): TokenizerJson => ({
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  },
  post_processor: null,
  decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    vocab,
    merges,
  },
});

/** Bytes that are printable characters of Latin-1 stand for themselves in GPT-2's vocabulary, and come first in it. */
const printable = [...Array(256).keys()].filter(
  (byte) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad),
);
const others = [...Array(256).keys()].filter((byte) => !printable.includes(byte));

/** The character by which a byte is written: those that cannot be printed are at 256 and on. */
const symbolOf: ReadonlyMap<number, string> = new Map([
  ...printable.map((byte) => [byte, String.fromCharCode(byte)] as const),
  ...others.map((byte, i) => [byte, String.fromCharCode(256 + i)] as const),
]);

const byteSymbols: readonly string[] = [...symbolOf.values()];

const spell = (word: string): readonly string[] =>
  Array.from(new TextEncoder().encode(word), (byte) => symbolOf.get(byte) as string);
