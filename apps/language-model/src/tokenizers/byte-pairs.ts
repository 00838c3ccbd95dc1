import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { learnMerges, type Merge } from "./merges.js";
import type { Tokenizer } from "./tokenizer.js";

export interface BytePairsState {
  readonly type: "bpe";
  /** In the order in which they were learnt, each as its two parts with a space between. */
  readonly merges: readonly string[];
}

/** GPT-2's words: the space before a word belongs to it, and no token reaches over the end of one. */
const words = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/**
 * GPT-2's byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019): no text is unknown to it. Merges are learnt
 * here; what applies them is Hugging Face's tokenizer, given the `tokenizer.json` that {@link tokenizerJson} makes.
 */
export class BytePairs implements Tokenizer {
  readonly #merges: readonly Merge[];
  readonly #tokenizer: HuggingFaceTokenizer;
  /** The tokens of words that were met. */
  readonly #known = new Map<string, readonly number[]>();

  constructor({ merges }: Omit<BytePairsState, "type">) {
    this.#merges = merges.map((merge) => merge.split(" ") as unknown as Merge);
    const json = JSON.parse(JSON.stringify(tokenizerJson(this.#merges)));
    this.#tokenizer = new HuggingFaceTokenizer(json, { clean_up_tokenization_spaces: false });
  }

  /** Learns merges until there are as many tokens, the 256 bytes included, or nothing is left to merge. */
  static train(text: string, vocabSize: number): BytePairs {
    const counts = new Map<string, number>();
    for (const [word] of text.matchAll(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
    const spelled = [...counts].map(([word, count]) => ({ symbols: spell(word), count }));
    const merges = learnMerges(spelled, vocabSize - byteSymbols.length);
    return new BytePairs({ merges: merges.map((pair) => pair.join(" ")) });
  }

  get vocabSize(): number {
    return byteSymbols.length + this.#merges.length;
  }

  encode(text: string): Uint32Array {
    const tokens: number[] = [];
    for (const [word] of text.matchAll(words)) {
      let ids = this.#known.get(word);
      if (!ids) {
        ids = this.#tokenizer.encode(word).ids;
        this.#known.set(word, ids);
      }
      for (const id of ids) tokens.push(id);
    }
    return Uint32Array.from(tokens);
  }

  decode(tokens: Iterable<number>): string {
    const ids = [...tokens];
    return ids.length === 0 ? "" : this.#tokenizer.decode(ids);
  }

  state(): BytePairsState {
    return { type: "bpe", merges: this.#merges.map((pair) => pair.join(" ")) };
  }
}

/** The tokenizer as Hugging Face's libraries read it. */
export const tokenizerJson = (merges: readonly Merge[]): object => ({
  version: "1.0",
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true },
  post_processor: null,
  decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true },
  model: {
    type: "BPE",
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    byte_fallback: false,
    vocab: Object.fromEntries(
      [...byteSymbols, ...merges.map((pair) => pair.join(""))].map((token, id) => [token, id]),
    ),
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
