/**
 * The ranks that take part in a collective: all of them, those on the host of this rank, or those of equal local rank, one on each host.
 */
export type Scope = "world" | "host" | "peers";

/** The distribution of ranks over hosts. */
export interface Hosts {
  /** The host of each rank, counted from 0 in the order in which ranks name them. */
  readonly hostOf: readonly number[];
  /** Number of hosts. */
  readonly count: number;
  /** Whether every host has equally many ranks. The scope "peers" needs that. */
  readonly isEven: boolean;
  /** Position of this rank among those of its host. */
  readonly localRank: number;
  /** Number of ranks on the host of this rank. */
  readonly localSize: number;
}

/** Options of a collective. */
export interface CollectiveOptions {
  /** Default "world". */
  readonly scope?: Scope | undefined;
  /** The thing that is exchanged, for errors: "bucket 3". */
  readonly label?: string | undefined;
}

/** The traffic of a rank, since the carrier was opened. */
export interface Traffic {
  /** Collectives that completed. */
  readonly collectives: number;
  /** Bytes sent to other ranks. */
  readonly bytes: number;
  /** The part of them that went to other hosts. */
  readonly bytesAcrossHosts: number;
}

/**
 * Moves bytes between the ranks of a job. All ranks of a scope make the same calls in the same order. A carrier runs one collective at a
 * time, in the order of the calls, and never blocks the event loop. MPI does not compare calls of ranks; exchanges compare what they average.
 *
 * Steps of a runtime call it, too, and `await runtime.step()` does not wait for them: call `await runtime.flush()` before others.
 *
 * After a failure all further calls reject with the same error: other ranks may have completed what failed here. `close()` then ends
 * the job without waiting for them.
 */
export interface Carrier {
  readonly rank: number;
  readonly size: number;
  readonly hosts: Hosts;
  readonly traffic: Traffic;
  /** The collective that waits for other ranks, with its label, where the carrier knows: for a program that is told to end. */
  readonly underWay?: string | undefined;
  /** The ranks of a scope, in order. */
  members(scope: Scope): readonly number[];
  /** Memory that this carrier moves without a copy of its own. Other memory works, too. */
  allocate(bytes: number): Uint8Array;
  /**
   * Sends the i-th of equal chunks of `send` to the i-th member, and receives one from each in their order. The arrays must not change
   * until the promise resolves.
   */
  allToAll(send: Uint8Array, receive: Uint8Array, options?: CollectiveOptions): Promise<void>;
  /** Sends `send` to every member, and receives theirs in their order. */
  allGather(send: Uint8Array, receive: Uint8Array, options?: CollectiveOptions): Promise<void>;
  /** Replaces every element by the largest of all members. */
  max(values: Int32Array, options?: CollectiveOptions): Promise<void>;
  /** Resolves when every member has called it. */
  barrier(options?: CollectiveOptions): Promise<void>;
  /** Ends the part of this rank. Waits for the other ranks unless the carrier has failed. */
  close(): Promise<void>;
}
