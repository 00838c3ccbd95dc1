import { Tokenizer } from "@huggingface/tokenizers";
import type { SentenceContext } from "./examples.js";
import { specialTokens } from "./vocabulary.js";
import type { WordFeatures } from "./word-features.js";

/** A sequence as a model takes it. */
export interface Encoded {
  /** Tokens: `[CLS]`, the text's, `[SEP]`; of a pair then those of the second text, and `[SEP]`. */
  readonly ids: readonly number[];
  /** The place of the first token of the second text. Undefined: there is one text. */
  readonly second?: number | undefined;
}

/** A sentence of which each word has a place among the tokens. */
export interface EncodedWords extends Encoded {
  /** The position of each word's first token, for the words that remain after the sentence is cut. */
  readonly starts: readonly number[];
  /** The features of each of these words, for models that use them. */
  readonly features?: readonly (readonly number[])[] | undefined;
}

/** What a sentence is encoded with. */
export interface WordsOptions {
  /** Features of words besides their tokens. */
  readonly features?: WordFeatures | undefined;
  /** The sentences around it. */
  readonly context?: SentenceContext | undefined;
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
    return { ids: this.#enclosed(this.#idsOf(text, maxLength - 2)) };
  }

  /** Two texts of at most `maxLength` tokens together. Tokens are cut off the longer text, one by one, as run_classifier does. */
  encodePair(text: string, pair: string, maxLength: number): Encoded {
    const most = maxLength - 3;
    const [first, second] = [this.#idsOf(text, most), this.#idsOf(pair, most)];
    const [firstLength, secondLength] = lengthsWithin(most, first.length, second.length);
    const ids = this.#enclosed(first.slice(0, firstLength));
    return {
      ids: [...ids, ...second.slice(0, secondLength), this.ids["[SEP]"]],
      second: ids.length,
    };
  }

  /**
   * A sentence of at most `maxLength` tokens; words that do not fit whole are cut off. What is left of the length has tokens of the
   * sentences around it.
   */
  encodeWords(
    words: readonly string[],
    maxLength: number,
    { features, context }: WordsOptions = {},
  ): EncodedWords {
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
    const { before, after } = this.#around(context, maxLength - 2 - ids.length);
    const encoded = {
      ids: this.#enclosed([...before, ...ids, ...after]),
      starts: starts.map((start) => start + before.length),
    };
    return features
      ? { ...encoded, features: features.encode(words).slice(0, starts.length) }
      : encoded;
  }

  /** The first tokens of a text. */
  #idsOf(text: string, most: number): readonly number[] {
    const ids: number[] = [];
    // White space always parts tokens, so that the words between are looked up one by one.
    for (const word of text.split(/\s+/)) {
      if (ids.length >= most) break;
      if (word !== "") ids.push(...this.#piecesOf(word));
    }
    return ids.slice(0, most);
  }

  /** The nearest tokens of the sentences before and after one, as many as fit, the same number of both if there are. */
  #around(
    context: SentenceContext | undefined,
    room: number,
  ): { readonly before: readonly number[]; readonly after: readonly number[] } {
    if (!context) return { before: [], after: [] };
    const { sentences, place } = context;
    const gather = (from: number, step: 1 | -1): readonly number[] => {
      const ids: number[] = [];
      for (let at = from; ids.length < room && sentences[at] !== undefined; at += step) {
        const tokens = sentences[at]?.flatMap((word) => this.#piecesOf(word)) ?? [];
        if (step === 1) ids.push(...tokens);
        else ids.unshift(...tokens);
      }
      return ids;
    };
    const [before, after] = [gather(place - 1, -1), gather(place + 1, 1)];
    const [first, second] = lengthsWithin(room, before.length, after.length);
    return { before: before.slice(before.length - first), after: after.slice(0, second) };
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

/** The lengths of two lists after single elements were cut off the longer one, or the second of equal ones, until both fit. */
function lengthsWithin(most: number, first: number, second: number): readonly [number, number] {
  if (first + second <= most) return [first, second];
  const half = Math.ceil(most / 2);
  if (second <= most - half) return [most - second, second];
  if (first <= half) return [first, most - first];
  return [half, most - half];
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
