import { permutation } from "@halfstep/data";
import type { BertConfig } from "@halfstep/models";
import type { Runtime, Tensor } from "@halfstep/tensor";
import type { Encoded } from "./tokenizer.js";

/**
 * Windows of so many batches are sorted by length. Few, because texts of equal length are also similar otherwise, and batches should
 * not be.
 */
const window = 8;

/** Lengths are rounded up to a multiple of this, so that few shapes, and so few plans, do for all batches. */
const lengthStep = 16;

/**
 * The batches of an epoch in a random order that follows from seed and epoch alone. Sequences of a batch have about equal lengths,
 * which needs little padding.
 */
export function shuffledByLength<Example extends Encoded>(
  examples: readonly Example[],
  { batchSize, seed, epoch }: { batchSize: number; seed: number; epoch: number },
): readonly (readonly Example[])[] {
  const order = [...permutation(examples.length, seed, epoch)].map(
    (index) => examples[index] as Example,
  );
  const windows = chunks(order, batchSize * window).map((each) => each.sort(byLength));
  const batches = windows.flatMap((each) => chunks(each, batchSize));
  return [...permutation(batches.length, seed + 1, epoch)].map(
    (index) => batches[index] as Example[],
  );
}

/** All examples, the shortest first, in batches. */
export const sortedByLength = <Example extends Encoded>(
  examples: readonly Example[],
  batchSize: number,
): readonly (readonly Example[])[] => chunks([...examples].sort(byLength), batchSize);

/** Batches up to the signal; the first comes in any case. */
export function* until<Batch>(
  signal: AbortSignal | undefined,
  batches: readonly Batch[],
): Generator<Batch> {
  for (const batch of batches) {
    yield batch;
    if (signal?.aborted) return;
  }
}

/** The tokens of the longest text of a batch. */
export const longestOf = (batch: readonly Encoded[]): number =>
  batch.reduce((most, { ids }) => Math.max(most, ids.length), 0);

const byLength = (a: Encoded, b: Encoded): number => a.ids.length - b.ids.length;

const chunks = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
    list.slice(i * size, (i + 1) * size),
  );

/** Sequences as a rectangle, padded behind. */
interface Padded {
  /** [count, length], row by row */
  readonly values: Uint32Array;
  /** 1 for tokens of the sequences, 0 for padding. */
  readonly mask: Uint32Array;
  readonly shape: readonly [count: number, length: number];
}

/**
 * @param most the largest length of a sequence and of the rectangle
 * @param least the length of a sequence for which there must be room
 */
export function padded(
  sequences: readonly (readonly number[])[],
  padding: number,
  most: number,
  least = 1,
): Padded {
  const longest = Math.max(least, ...sequences.map((sequence) => sequence.length));
  const length = Math.min(most, Math.ceil(longest / lengthStep) * lengthStep);
  const values = new Uint32Array(sequences.length * length).fill(padding);
  const mask = new Uint32Array(sequences.length * length);
  for (const [i, sequence] of sequences.entries()) {
    values.set(sequence, i * length);
    mask.fill(1, i * length, i * length + sequence.length);
  }
  return { values, mask, shape: [sequences.length, length] };
}

/** A batch as BERT takes it: uint32 tensors [batch, length]. */
interface BatchInputs {
  readonly inputIds: Tensor;
  readonly attentionMask: Tensor;
  /** Only of pairs: 1 for tokens of the second text. */
  readonly tokenTypeIds?: Tensor;
}

/**
 * A batch of texts, or of pairs, as BERT takes it.
 * @param least the length of a text for which there must be room
 */
export function bertInputs(
  runtime: Runtime,
  batch: readonly Encoded[],
  { padTokenId, maxPositionEmbeddings, typeVocabSize }: BertConfig,
  least?: number,
): BatchInputs {
  const ids = batch.map((example) => example.ids);
  const { values, mask, shape } = padded(ids, padTokenId, maxPositionEmbeddings, least);
  const inputs = {
    inputIds: runtime.tensor(values, shape),
    attentionMask: runtime.tensor(mask, shape),
  };
  const hasPairs = batch.some(({ second }) => second !== undefined);
  if (!hasPairs || typeVocabSize < 2) return inputs;
  const types = new Uint32Array(values.length);
  for (const [i, { ids, second }] of batch.entries())
    types.fill(1, i * shape[1] + (second ?? ids.length), i * shape[1] + ids.length);
  return { ...inputs, tokenTypeIds: runtime.tensor(types, shape) };
}
