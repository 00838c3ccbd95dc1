import { UsageError } from "@halfstep/trainer/cli";
import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import type { Tokenizer } from "./tokenizer.js";
import { wordsOf } from "./words.js";

/** A `tokenizer.json`, as Hugging Face's libraries read and write it. */
export interface TokenizerJson {
  readonly added_tokens?: readonly { readonly id: number }[];
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>;
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

export interface SubwordsState {
  readonly type: "bpe";
  /** As text, because tokens are keys in it and may collide with names that checkpoints reserve. */
  readonly json: string;
}

/** A `tokenizer.json` applied by Hugging Face's own code: byte pairs that were learnt here, or those of GPT-2. */
export class Subwords implements Tokenizer {
  readonly json: TokenizerJson;
  readonly vocabSize: number;
  readonly #tokenizer: HuggingFaceTokenizer;
  /** Cached tokens of words. */
  readonly #known = new Map<string, readonly number[]>();

  constructor(json: TokenizerJson) {
    this.json = json;
    const ids = [
      ...Object.values(json.model.vocab),
      ...(json.added_tokens ?? []).map(({ id }) => id),
    ];
    this.vocabSize = ids.reduce((most, id) => Math.max(most, id), -1) + 1;
    this.#tokenizer = new HuggingFaceTokenizer(json, { clean_up_tokenization_spaces: false });
  }

  encode(text: string): Uint32Array {
    const tokens: number[] = [];
    for (const word of wordsOf(text)) {
      let ids = this.#known.get(word);
      if (!ids) {
        ids = this.#tokenizer.encode(word, { add_special_tokens: false }).ids;
        if (ids.length === 0 || ids.some((id) => !Number.isInteger(id)))
          throw new UsageError(
            `${JSON.stringify(word)} has characters that the tokenizer does not know: leave them out`,
          );
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

  state(): SubwordsState {
    return { type: "bpe", json: JSON.stringify(this.json) };
  }
}
