import { Tokenizer } from "@huggingface/tokenizers";
import type { SentenceContext } from "./examples.js";
import { specialTokens } from "./vocabulary.js";

/** A sequence as a model takes it. */
export interface Encoded {
  /** Tokens: `[CLS]`, the text's, `[SEP]`; of a pair then those of the second text, and `[SEP]`. */
  readonly ids: readonly number[];
  /** The place of the first token of the second text. Undefined: there is one text. */
  readonly second?: number | undefined;
  /** Of a window of a longer sentence: the place of its first word in the sentence. Default 0. */
  readonly first?: number | undefined;
}

/** A sentence, or a window of it, of which each word has a place among the tokens. */
export interface EncodedWords extends Encoded {
  /** The position of each word's first token. */
  readonly starts: readonly number[];
  /** The features of each of these words, for models that use them. */
  readonly features?: readonly (readonly number[])[] | undefined;
}

/** Which words of a sentence are encoded, and with what. */
export interface WordsOptions {
  /** The place of the first word. Default 0. */
  readonly first?: number;
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
   * The words of a sentence from the first on, as many as fit whole in `maxLength` tokens; of a word with more tokens than that, its first
   * ones. With a context, what is left of the length has tokens of the words and sentences around them.
   */
  encodeWords(
    words: readonly string[],
    maxLength: number,
    { first = 0, context }: WordsOptions = {},
  ): EncodedWords {
    const room = maxLength - 2;
    const ids: number[] = [];
    const starts: number[] = [];
    let end = first;
    for (; end < words.length; end++) {
      const pieces = this.#piecesOf(words[end] as string);
      // A word that has only control characters has no tokens, but still a position.
      const present = pieces.length > 0 ? pieces.slice(0, room) : [this.ids["[UNK]"]];
      if (ids.length + present.length > room) break;
      starts.push(ids.length + 1);
      ids.push(...present);
    }
    const { before, after } = context
      ? this.#around(outward(words, first, end, context), room - ids.length)
      : { before: [], after: [] };
    return {
      ids: this.#enclosed([...before, ...ids, ...after]),
      starts: starts.map((start) => start + before.length),
    };
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

  /** The nearest tokens of the words before and after, as many as fit, the same number of both if there are. */
  #around(
    words: Surroundings,
    room: number,
  ): { readonly before: readonly number[]; readonly after: readonly number[] } {
    const gather = (nearest: Iterable<string>): number[][] => {
      const gathered: number[][] = [];
      let count = 0;
      for (const word of nearest) {
        if (count >= room) break;
        const pieces = [...this.#piecesOf(word)];
        gathered.push(pieces);
        count += pieces.length;
      }
      return gathered;
    };
    const [before, after] = [gather(words.before).reverse().flat(), gather(words.after).flat()];
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

/** The words around others, the nearest first. */
interface Surroundings {
  readonly before: Iterable<string>;
  readonly after: Iterable<string>;
}

/** The words around those from `first` to before `end`: of their own sentence, then of those around it. */
function outward(
  words: readonly string[],
  first: number,
  end: number,
  { sentences, place }: SentenceContext,
): Surroundings {
  function* walk(sentence: readonly string[], at: number, next: number, step: 1 | -1) {
    for (let i = at; sentence[i] !== undefined; i += step) yield sentence[i] as string;
    for (let i = next; sentences[i] !== undefined; i += step) {
      const other = sentences[i] as readonly string[];
      for (let j = step === 1 ? 0 : other.length - 1; other[j] !== undefined; j += step)
        yield other[j] as string;
    }
  }
  return { before: walk(words, first - 1, place - 1, -1), after: walk(words, end, place + 1, 1) };
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
