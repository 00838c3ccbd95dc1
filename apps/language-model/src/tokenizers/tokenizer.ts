import { DataError } from "@halfstep/data";
import type { ConfigFields } from "@halfstep/models";
import { learnBytePairs } from "./byte-pairs.js";
import { Characters, type CharactersState } from "./characters.js";
import { foreignSubwords } from "./foreign-subwords.js";
import { Subwords, type SubwordsState, type TokenizerJson } from "./subwords.js";

/** Converts text to numbers, and back. */
export interface Tokenizer {
  readonly vocabSize: number;
  /** The same for Hugging Face's libraries. */
  readonly json: TokenizerJson;
  /** @throws UsageError where the text has a character that the tokenizer cannot encode */
  encode(text: string): Uint32Array;
  decode(tokens: Iterable<number>): string;
  /** Plain data for checkpoints. */
  state(): TokenizerState;
}

export type TokenizerState = CharactersState | SubwordsState;

export type TokenizerName = TokenizerState["type"];

/** Makes a tokenizer for texts. The held-out text contributes at most characters, never frequencies. */
export const trainTokenizer = (
  type: TokenizerName,
  { train, heldOut }: { readonly train: string; readonly heldOut: string },
  vocabSize: number,
): Tokenizer =>
  type === "char" ? Characters.of(train + heldOut) : new Subwords(learnBytePairs(train, vocabSize));

/**
 * The tokenizer that a checkpoint has.
 * @param vocabSize of the model that it belongs to
 * @throws ConfigError, DataError where it is not from this program, or belongs to another model
 */
export function savedTokenizer(fields: ConfigFields, vocabSize: number, source: string): Tokenizer {
  const type = fields.oneOf<TokenizerName>("type", ["char", "bpe"]);
  if (type === "bpe") return foreignSubwords(parsed(fields.text("json")), vocabSize, source);
  const characters = fields.text("characters");
  const tokenizer = new Characters({ type, characters });
  if (tokenizer.vocabSize !== vocabSize || new Set(characters).size !== vocabSize)
    throw new DataError(
      source,
      `has a tokenizer of ${tokenizer.vocabSize} characters, and a model of ${vocabSize} different ones: they are of two models, or broken`,
    );
  return tokenizer;
}

/** Undefined where it is no JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
