import { CheckpointError } from "@halfstep/trainer";
import { learnBytePairs } from "./byte-pairs.js";
import { Characters, type CharactersState } from "./characters.js";
import { Subwords, type SubwordsState, type TokenizerJson } from "./subwords.js";

/** How text becomes numbers, and back. */
export interface Tokenizer {
  readonly vocabSize: number;
  /** The same for Hugging Face's libraries. */
  readonly json: TokenizerJson;
  /** @throws UsageError where the text has something that the tokenizer does not know */
  encode(text: string): Uint32Array;
  decode(tokens: Iterable<number>): string;
  /** Plain data for checkpoints. */
  state(): TokenizerState;
}

export type TokenizerState = CharactersState | SubwordsState;

export type TokenizerName = TokenizerState["type"];

/** Makes a tokenizer for texts. The held-out one gives it characters at most, never frequencies. */
export const trainTokenizer = (
  type: TokenizerName,
  { train, heldOut }: { readonly train: string; readonly heldOut: string },
  vocabSize: number,
): Tokenizer =>
  type === "char" ? Characters.of(train + heldOut) : new Subwords(learnBytePairs(train, vocabSize));

/**
 * The tokenizer that a checkpoint has.
 * @throws CheckpointError where that is none of this program's
 */
export function savedTokenizer(state: unknown, path: string): Tokenizer {
  const { type } = (state ?? {}) as Partial<TokenizerState>;
  if (type === "char") return new Characters(state as CharactersState);
  if (type === "bpe") return new Subwords(JSON.parse((state as SubwordsState).json));
  throw new CheckpointError("misfit", path, "has no tokenizer of this program");
}
