/** The failure of an exchange, for programs; the message describes it for people. */
export type ExchangeFailure =
  /** The other ranks did not answer within the deadline. */
  | "deadline"
  /** The carrier reported an error. */
  | "carrier"
  /** Ranks made different calls. */
  | "mismatch"
  /** The carrier was closed. */
  | "closed";

// `instanceof` looks for this brand, so that an error thrown by another copy of the package is recognised too.
const brand = Symbol.for("@halfstep/ExchangeError");

/** An exchange between ranks failed. Nothing that it would have changed was changed on this rank. */
export class ExchangeError extends Error {
  readonly failure: ExchangeFailure;
  /** The rank that reports it. */
  readonly rank: number;
  /** The collective and its label: "allToAll of bucket 3". */
  readonly collective: string;

  constructor(
    failure: ExchangeFailure,
    {
      rank,
      collective,
      fact,
    }: { readonly rank: number; readonly collective: string; readonly fact: string },
  ) {
    super(`rank ${rank}: ${collective}: ${fact}`);
    this.name = "ExchangeError";
    this.failure = failure;
    this.rank = rank;
    this.collective = collective;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}

/** Ranks average different things. */
export const otherContents = (
  { rank }: { readonly rank: number },
  collective = "an exchange",
): ExchangeError =>
  new ExchangeError("mismatch", {
    ...{ rank, collective },
    fact:
      "ranks average different things: give all the same options, and in a step gradients of the same parameters. " +
      "Where a rank does not use a parameter p, add p.sum().mul(0) to its loss",
  });
