import { DataError } from "@halfstep/data";
import { Subwords, type TokenizerJson } from "./subwords.js";

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};

/**
 * The tokenizer of an untrusted `tokenizer.json`: byte pairs like GPT-2's. All used parts are validated: ids are indices of the
 * model's embedding, so −5 and a billion are refused.
 *
 * @param vocabSize of the model that it belongs to
 * @param mergesSource where the merges come from, if they are in a file of their own
 * @throws DataError
 */
export function foreignSubwords(
  json: unknown,
  vocabSize: number,
  source: string,
  mergesSource: string = source,
): Subwords {
  const refuse = (problem: string, from: string = source): never => {
    throw new DataError(from, problem);
  };
  const { model, added_tokens: added, normalizer, pre_tokenizer: before } = fieldsOf(json);
  const { type, vocab, merges } = fieldsOf(model);
  if (type !== "BPE")
    refuse("has a model that is no BPE: give the tokenizer of a GPT-2, which is of byte pairs");
  if (normalizer !== undefined && normalizer !== null)
    refuse("has a normalizer, which GPT-2 has not: give the tokenizer of a GPT-2");
  const { type: splits, add_prefix_space: isPrefixed } = fieldsOf(before);
  if (before !== undefined && before !== null && (splits !== "ByteLevel" || isPrefixed === true))
    refuse(
      "has a pre_tokenizer that is not GPT-2's: give one of ByteLevel without add_prefix_space",
    );
  const isVocab = typeof vocab === "object" && vocab !== null && !Array.isArray(vocab);
  if (!isVocab || Object.keys(vocab).length === 0)
    refuse("has no model.vocab: it must be an object of tokens and their ids");
  const isPair = (merge: unknown): boolean =>
    typeof merge === "string" ||
    (Array.isArray(merge) && merge.length === 2 && merge.every((part) => typeof part === "string"));
  if (!Array.isArray(merges) || !merges.every(isPair))
    refuse("has no model.merges: it must be a list of pairs of tokens", mergesSource);
  const unknown = (merges as readonly (string | readonly string[])[])
    .map((merge) => (typeof merge === "string" ? merge.split(" ") : merge))
    .find(
      (parts) =>
        parts.length !== 2 ||
        ![...parts, parts.join("")].every((token) => Object.hasOwn(vocab as Fields, token)),
    );
  if (unknown)
    refuse(
      `merges ${JSON.stringify(unknown.join(" ").slice(0, 40))}, which is not in its vocab: put both files of one model here`,
      mergesSource,
    );
  const tokens: readonly unknown[] = Array.isArray(added) ? added : [];
  if (added !== undefined && added !== null && !Array.isArray(added))
    refuse("has added_tokens that are no list: give the file as transformers saved it");
  const strange = tokens.map(fieldsOf).find(({ content }) => typeof content !== "string");
  if (strange)
    refuse("has an added token without a content: give the file as transformers saved it");
  const ids = [
    ...Object.entries(vocab as Fields),
    ...tokens.map(fieldsOf).map(({ content, id }) => [String(content), id] as const),
  ];
  const odd = ids.find(
    ([, id]) => !Number.isSafeInteger(id) || !(0 <= Number(id) && Number(id) < vocabSize),
  );
  if (odd)
    refuse(
      `gives ${JSON.stringify(odd[0].slice(0, 40))} no id from 0 to ${vocabSize - 1}, which the model's vocab_size is for: put the files of one model here`,
    );
  try {
    return new Subwords(json as TokenizerJson);
  } catch (error) {
    return refuse(
      `cannot be used as a tokenizer (${(error as Error).message.split("\n", 1)[0]}): give the file as transformers saved it`,
    );
  }
}
