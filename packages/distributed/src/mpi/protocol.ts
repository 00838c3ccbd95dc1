import type { Scope } from "../carrier.js";

// Messages between a carrier and its thread, which alone calls MPI.

/** How the thread begins. */
export interface ThreadSetting {
  /** Library files to try. */
  readonly files: readonly string[];
}

/** A collective. Its arrays are shared memory. */
export type CollectiveCall =
  | {
      readonly kind: "allToAll" | "allGather";
      readonly scope: Scope;
      readonly send: Uint8Array;
      readonly receive: Uint8Array;
      readonly members: number;
    }
  | {
      readonly kind: "max";
      readonly scope: Scope;
      readonly send: Int32Array;
      readonly receive: Int32Array;
    }
  | { readonly kind: "barrier"; readonly scope: Scope };

/** A request to the thread. */
export interface Request {
  readonly id: number;
  readonly call: CollectiveCall | { readonly kind: "finalize" };
  /** Milliseconds. */
  readonly deadline: number;
}

/** The first message of the thread. */
export type Greeting =
  | {
      readonly kind: "ready";
      readonly rank: number;
      readonly size: number;
      readonly library: string;
      /** The least rank on the host of each rank. */
      readonly hostNumbers: readonly number[];
    }
  | { readonly kind: "unavailable"; readonly fact: string };

/** The answer to a request. */
export interface Answer {
  readonly kind: "answer";
  readonly id: number;
  readonly failure?: { readonly kind: "deadline" | "carrier"; readonly fact: string } | undefined;
}
