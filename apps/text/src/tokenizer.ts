import { Tokenizer } from "@huggingface/tokenizers";
import { specialTokens } from "./vocabulary.js";
import type { WordFeatures } from "./word-features.js";

/** A sequence as a model takes it. */
export interface Encoded {
  /** Tokens: `[CLS]`, the text's, `[SEP]`. */
  readonly ids: readonly number[];
}

/** A sentence of which each word has a place among the tokens. */
export interface EncodedWords extends Encoded {
  /** The position of each word's first token, for the words that remain after the sentence is cut. */
  readonly starts: readonly number[];
  /** The features of each of these words, for models that use them. */
  readonly features?: readonly (readonly number[])[] | undefined;
}

/** BERT's tokenization: words, in lower case unless the vocabulary has both, and punctuation, cut into WordPiece tokens. */
export class BertTokenizer {
  readonly vocabulary: readonly string[];
  readonly isLowerCase: boolean;
  readonly ids: Readonly<Record<(typeof specialTokens)[number], number>>;
  readonly #tokenizer: Tokenizer;
  /** Tokens of words that have been seen. */
  readonly #words = new Map<string, readonly number[]>();

  constructor(vocabulary: readonly string[], isLowerCase: boolean = true) {
    this.vocabulary = vocabulary;
    this.isLowerCase = isLowerCase;
    this.ids = {
      "[PAD]": vocabulary.indexOf("[PAD]"),
      "[UNK]": vocabulary.indexOf("[UNK]"),
      "[CLS]": vocabulary.indexOf("[CLS]"),
      "[SEP]": vocabulary.indexOf("[SEP]"),
      "[MASK]": vocabulary.indexOf("[MASK]"),
    };
    this.#tokenizer = new Tokenizer(tokenizerJson(vocabulary, isLowerCase), {});
  }

  /** The tokens of a text, without `[CLS]` and `[SEP]`. */
  tokenize(text: string): readonly string[] {
    return this.#tokenizer.tokenize(text);
  }

  /** A text of at most `maxLength` tokens; the rest is cut off. */
  encode(text: string, maxLength: number): Encoded {
    const ids: number[] = [];
    // White space always parts tokens, so that the words between are looked up one by one.
    for (const word of text.split(/\s+/)) {
      if (ids.length >= maxLength - 2) break;
      if (word !== "") ids.push(...this.#piecesOf(word));
    }
    return { ids: this.#enclosed(ids.slice(0, maxLength - 2)) };
  }

  /** A sentence of at most `maxLength` tokens; words that do not fit whole are cut off. */
  encodeWords(words: readonly string[], maxLength: number, features?: WordFeatures): EncodedWords {
    const ids: number[] = [];
    const starts: number[] = [];
    for (const word of words) {
      const pieces = this.#piecesOf(word);
      // A word that has only control characters has no tokens, but still a position.
      const present = pieces.length > 0 ? pieces : [this.ids["[UNK]"]];
      if (ids.length + present.length > maxLength - 2) break;
      starts.push(ids.length + 1);
      ids.push(...present);
    }
    const encoded = { ids: this.#enclosed(ids), starts };
    return features
      ? { ...encoded, features: features.encode(words).slice(0, starts.length) }
      : encoded;
  }

  #piecesOf(word: string): readonly number[] {
    const known = this.#words.get(word);
    if (known) return known;
    const { ids } = this.#tokenizer.encode(word, { add_special_tokens: false });
    this.#words.set(word, ids);
    return ids;
  }

  #enclosed(ids: readonly number[]): readonly number[] {
    return [this.ids["[CLS]"], ...ids, this.ids["[SEP]"]];
  }
}

/** The content of a `tokenizer.json` of BERT. */
const tokenizerJson = (vocabulary: readonly string[], isLowerCase: boolean): object => ({
  version: "1.0",
  added_tokens: specialTokens.map((content) => ({
    id: vocabulary.indexOf(content),
    content,
    special: true,
    normalized: false,
  })),
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: isLowerCase,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: null,
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
  },
});
