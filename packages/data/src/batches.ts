import { philox4x32 } from "@halfstep/formats/philox";
import type { Upcoming } from "./ahead.js";
import { described, requireOptions, requireWhole } from "./checks.js";

/** The state of a sampler. Plain data for checkpoints. */
export interface SamplerState {
  readonly epoch: number;
  /** Samples of this epoch that were already returned. */
  readonly position: number;
}

/** Options of batches. */
export interface BatchOptions {
  /** Samples in the data set. */
  readonly count: number;
  readonly batchSize: number;
  /** Leave out the last batch of an epoch when it is smaller than `batchSize`. Default false. */
  readonly dropLast?: boolean;
}

/** Options of shuffled batches. */
export interface ShuffleOptions extends BatchOptions {
  /** A non-negative safe integer. */
  readonly seed: number;
  /** The epoch to begin with. Default 0. */
  readonly epoch?: number;
}

/**
 * A random order of 0 … count − 1: Fisher–Yates (Durstenfeld's form) fed by Philox4x32-10 with the seed as key and
 * (block, 0, epoch, 0) as counter. The same (count, seed, epoch) gives the same order on every machine.
 */
export const permutation = (count: number, seed: number, epoch: number): Uint32Array => {
  requireWhole("count", count, 0, 2 ** 32);
  requireWhole("seed", seed, 0, Number.MAX_SAFE_INTEGER);
  requireWhole("epoch", epoch, 0, 2 ** 32 - 1);
  const key = [seed >>> 0, Math.floor(seed / 2 ** 32)] as const;
  let block = 0;
  let words = [0, 0, 0, 0];
  let used = 4;
  const below = (range: number): number => {
    // Words from the incomplete last multiple of `range` are drawn again: every remainder stays equally likely.
    const limit = 2 ** 32 - (2 ** 32 % range);
    for (;;) {
      if (used === 4) {
        words = philox4x32([block++, 0, epoch, 0], key);
        used = 0;
      }
      const word = words[used++] as number;
      if (word < limit) return word % range;
    }
  };
  const order = new Uint32Array(count).map((_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const chosen = below(last + 1);
    const swapped = order[last] as number;
    order[last] = order[chosen] as number;
    order[chosen] = swapped;
  }
  return order;
};

/**
 * Batches of indices in the order of the data set, for evaluation: `for (const indices of batches({ … }))`.
 * @throws RangeError for a number out of range or an unknown option
 */
export const batches = (options: BatchOptions): Generator<Uint32Array> => {
  requireOptions("batches", options, ["count", "batchSize", "dropLast"]);
  const { count, batchSize, dropLast = false } = options;
  requireWhole("count", count, 0, 2 ** 32);
  requireWhole("batchSize", batchSize, 1, 2 ** 32);
  requireFlag("dropLast", dropLast);
  return inOrder({ count, batchSize, dropLast });
};

function* inOrder({ count, batchSize, dropLast }: Required<BatchOptions>): Generator<Uint32Array> {
  for (let start = 0; start < usable(count, batchSize, dropLast); start += batchSize) {
    const length = Math.min(batchSize, count - start);
    yield new Uint32Array(length).map((_, index) => start + index);
  }
}

const shuffleOptions = ["count", "batchSize", "seed", "epoch", "dropLast"];

/**
 * Shuffled batches, epoch after epoch. Each loop over it finishes the current epoch; the next loop has the next one.
 * The result of `state()` after any batch can be passed to `loadState` of a sampler with the same options. That sampler
 * continues with the next batch, in this process or another. `prefetch` of a sampler counts a batch when the loop has it, so that what
 * was only made ahead is not skipped.
 */
export class ShuffledBatches implements Iterable<Uint32Array> {
  readonly #options: Required<ShuffleOptions>;
  #epoch: number;
  #position = 0;
  #order: { readonly epoch: number; readonly indices: Uint32Array } | undefined;

  constructor(options: ShuffleOptions) {
    requireOptions("shuffledBatches", options, shuffleOptions);
    const { count, batchSize, seed, epoch = 0, dropLast = false } = options;
    requireWhole("count", count, 1, 2 ** 32);
    requireWhole("batchSize", batchSize, 1, 2 ** 32);
    requireWhole("seed", seed, 0, Number.MAX_SAFE_INTEGER);
    requireWhole("epoch", epoch, 0, 2 ** 32 - 1);
    requireFlag("dropLast", dropLast);
    if (dropLast && batchSize > count) {
      throw new RangeError(
        `shuffledBatches: dropLast leaves nothing of ${count} samples in batches of ${batchSize}; use a smaller batchSize`,
      );
    }
    this.#options = { count, batchSize, seed, epoch, dropLast };
    this.#epoch = epoch;
  }

  /** Batches in a whole epoch. */
  get batchesPerEpoch(): number {
    const { count, batchSize, dropLast } = this.#options;
    return Math.ceil(usable(count, batchSize, dropLast) / batchSize);
  }

  *[Symbol.iterator](): Generator<Uint32Array> {
    const epoch = this.#epoch;
    while (this.#epoch === epoch) {
      const { indices, next } = this.#batchAt(this.state());
      // Moved on before the batch is handed out, so that state() in the loop's body counts it.
      this.#moveTo(next);
      yield indices;
    }
  }

  /** A loop for `prefetch`: a batch is counted by `state()` when it is handed over, not when it is taken ahead. */
  *ahead(): Generator<Upcoming<Uint32Array>> {
    const first = this.state();
    for (let from = first; from.epoch === first.epoch; ) {
      const { indices, next } = this.#batchAt(from);
      const { epoch, position } = from;
      const handOver = (): void => {
        if (this.#epoch !== epoch || this.#position !== position)
          throw new Error(
            "prefetch: the sampler was moved, by loadState or another loop, after batches were taken ahead: leave the loop first, then begin a new one",
          );
        this.#moveTo(next);
      };
      yield { item: indices, handOver };
      from = next;
    }
  }

  state(): SamplerState {
    return { epoch: this.#epoch, position: this.#position };
  }

  loadState(state: SamplerState): void {
    if (typeof state !== "object" || state === null)
      throw new TypeError(
        `loadState: the state is ${described(state)}: pass what state() returned, { epoch, position }`,
      );
    const { epoch, position } = state;
    const { count, batchSize, dropLast } = this.#options;
    requireWhole("epoch", epoch, 0, 2 ** 32 - 1);
    requireWhole("position", position, 0, usable(count, batchSize, dropLast) - 1);
    this.#moveTo({ epoch, position });
  }

  /** The batch at a position, and the position after it. */
  #batchAt({ epoch, position }: SamplerState): {
    readonly indices: Uint32Array;
    readonly next: SamplerState;
  } {
    const { count, batchSize, dropLast } = this.#options;
    const end = usable(count, batchSize, dropLast);
    const stop = Math.min(position + batchSize, end);
    const next = stop === end ? { epoch: epoch + 1, position: 0 } : { epoch, position: stop };
    return { indices: this.#orderOf(epoch).slice(position, stop), next };
  }

  #moveTo({ epoch, position }: SamplerState): void {
    this.#epoch = epoch;
    this.#position = position;
  }

  #orderOf(epoch: number): Uint32Array {
    if (this.#order?.epoch !== epoch) {
      const { count, seed } = this.#options;
      this.#order = { epoch, indices: permutation(count, seed, epoch) };
    }
    return this.#order.indices;
  }
}

/**
 * Shuffled batches of indices, the same for the same seed on every machine.
 * @throws RangeError for a number out of range or an unknown option
 */
export const shuffledBatches = (options: ShuffleOptions): ShuffledBatches =>
  new ShuffledBatches(options);

const usable = (count: number, batchSize: number, dropLast: boolean): number =>
  dropLast ? count - (count % batchSize) : count;

const requireFlag = (name: string, value: boolean): void => {
  if (typeof value !== "boolean")
    throw new RangeError(`${name} is ${described(value)}: it must be true or false`);
};
