import { UsageError } from "@halfstep/trainer/cli";
import type { TokenizerJson } from "./subwords.js";
import type { Tokenizer } from "./tokenizer.js";

export interface CharactersState {
  readonly type: "char";
  /** Each character once, in the order of their numbers. */
  readonly characters: string;
}

/** A token for each character (Unicode code point) of a text. */
export class Characters implements Tokenizer {
  readonly #characters: readonly string[];
  readonly #ids: ReadonlyMap<string, number>;

  constructor({ characters }: CharactersState) {
    this.#characters = [...characters];
    this.#ids = new Map(this.#characters.map((character, id) => [character, id]));
  }

  /** The characters of a text, by code point. */
  static of(text: string): Characters {
    const characters = [...new Set(text)].sort();
    return new Characters({ type: "char", characters: characters.join("") });
  }

  get vocabSize(): number {
    return this.#characters.length;
  }

  /** Byte-pair encoding without a merge, which leaves characters as they are. */
  get json(): TokenizerJson {
    return {
      version: "1.0",
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      decoder: { type: "Fuse" },
      model: { type: "BPE", unk_token: null, vocab: Object.fromEntries(this.#ids), merges: [] },
    };
  }

  encode(text: string): Uint32Array {
    const tokens = new Uint32Array(text.length);
    let count = 0;
    for (const character of text) {
      const id = this.#ids.get(character);
      if (id === undefined)
        throw new UsageError(
          `${JSON.stringify(character)} is none of the ${this.vocabSize} characters that the model knows: leave it out, or train with --tokenizer bpe`,
        );
      tokens[count++] = id;
    }
    return tokens.subarray(0, count);
  }

  decode(tokens: Iterable<number>): string {
    return Array.from(tokens, (id) => this.#characters[id] ?? "\uFFFD").join("");
  }

  state(): CharactersState {
    return { type: "char", characters: this.#characters.join("") };
  }
}
