import type { Binding } from "@halfstep/device";

/** A part of flat parameters that a shard owns. */
export interface ShardPart {
  /** Elements from the start of the flat buffers, a multiple of 128. */
  readonly offset: number;
  readonly length: number;
  /** The place of its elements in buffers that only the shard has, such as moments: a multiple of 128. */
  readonly at: number;
}

/**
 * The part of flat parameters that one of several optimizers steps. Their gradients and values are whole buffers, of which the shard
 * uses its parts. Its moments and masters have the elements of its parts only. `GradientExchange` of `@halfstep/distributed` makes shards
 * for the ranks of a job.
 */
export interface Shard<B> {
  /** In the order of their offsets; none where the parameters are fewer than the shards. */
  readonly parts: readonly ShardPart[];
  /**
   * Four float32 that stand for the gradients of all other shards: the root of the sum of their squares, and zeros. NaN where one of them
   * is infinite or NaN. Norms and checks that read it find what whole gradients would give.
   */
  readonly others: Binding<B>;
  /** Called within `step()` after the parameters of the shard are updated: passes them on, and takes those of the other shards. */
  share(): void;
  /**
   * The elements of all shards in a buffer of which each has a part. All call it in the same order.
   *
   * @param perElement elements of the buffer for each parameter element.
   */
  collect(own: ShardWords, perElement: number): Promise<ShardWords>;
}

/** Decoded elements of a buffer of a shard. */
export type ShardWords = Float32Array | Uint32Array;
