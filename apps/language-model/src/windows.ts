import { DataError, permutation, shareOf } from "@halfstep/data";
import type { BatchShare } from "@halfstep/trainer";

/** Sequences of one length, and the token that follows each of their tokens. */
export interface Batch {
  /** [rows, length] */
  readonly inputs: Uint32Array;
  /** The tokens after the last `scored` of each row: [rows, scored] */
  readonly targets: Uint32Array;
  readonly rows: number;
  readonly length: number;
  readonly scored: number;
}

/** A share of a batch. */
export interface TrainingBatch extends Batch {
  readonly share: BatchShare;
}

export interface TrainingWindows {
  readonly tokens: Uint32Array;
  /** Tokens of a sequence. */
  readonly context: number;
  /** Sequences in a batch of all processes together. */
  readonly batchSize: number;
  readonly seed: number;
  /** The process among those that share each batch. Default: the only one. */
  readonly job?: { readonly rank: number; readonly size: number } | undefined;
}

/**
 * The batches of an epoch from number `first` on: the text cut into sequences that follow each other, in random order. Each epoch
 * begins to cut at another token. An incomplete last batch is left out.
 * @throws DataError where the text is too short for a batch
 */
export function* trainingWindows(
  { tokens, context, batchSize, seed, job = { rank: 0, size: 1 } }: TrainingWindows,
  epoch: number,
  first = 0,
): Generator<TrainingBatch> {
  const [shift = 0] = permutation(context, seed, epoch);
  const count = Math.floor((tokens.length - 1 - shift) / context);
  const perEpoch = batchesPerEpoch({ tokens, context, batchSize });
  const order = permutation(count, seed, epoch);
  for (let batch = first; batch < perEpoch; batch++) {
    const starts = order.subarray(batch * batchSize, (batch + 1) * batchSize);
    const share = shareOf(starts, job.rank, job.size);
    const own = Array.from(share.samples, (window) => shift + window * context);
    yield { ...batchAt(tokens, own, context, context), share };
  }
}

/**
 * The same in every epoch, whatever its shift.
 * @throws DataError where there is none
 */
export function batchesPerEpoch({
  tokens,
  context,
  batchSize,
}: Omit<TrainingWindows, "seed" | "job">): number {
  const batches = Math.floor(Math.floor((tokens.length - context) / context) / batchSize);
  if (batches < 1)
    throw new DataError(
      "the training text",
      `has ${tokens.length} tokens, which is too little for a batch of ${batchSize} sequences of ${context}: lower --batch-size or --context`,
    );
  return batches;
}

/**
 * A text for evaluation: every token but the first is predicted once, from at least `context - stride` tokens before it where
 * there are as many.
 */
export function* evaluationWindows(
  tokens: Uint32Array,
  {
    context,
    stride,
    batchSize,
  }: { readonly context: number; readonly stride: number; readonly batchSize: number },
): Generator<Batch> {
  const last = tokens.length - 1;
  if (last < 1) throw new DataError("the held-out text", "has nothing to predict");
  const length = Math.min(context, last);
  yield batchAt(tokens, [0], length, length);
  const starts: number[] = [];
  for (let end = length + stride; end <= last; end += stride) starts.push(end - length);
  for (let i = 0; i < starts.length; i += batchSize)
    yield batchAt(tokens, starts.slice(i, i + batchSize), length, stride);
  const rest = (last - length) % stride;
  if (rest > 0) yield batchAt(tokens, [last - length], length, rest);
}

function batchAt(
  tokens: Uint32Array,
  starts: readonly number[],
  length: number,
  scored: number,
): Batch {
  const inputs = new Uint32Array(starts.length * length);
  const targets = new Uint32Array(starts.length * scored);
  for (const [row, start] of starts.entries()) {
    const end = start + length;
    inputs.set(tokens.subarray(start, end), row * length);
    targets.set(tokens.subarray(end + 1 - scored, end + 1), row * scored);
  }
  return { inputs, targets, rows: starts.length, length, scored };
}
