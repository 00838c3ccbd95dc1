/** A message from one rank to another. */
export interface Message {
  readonly from: number;
  readonly to: number;
  /** The collective that it belongs to. Messages may overtake each other. */
  readonly tag: string;
  /** What the sender calls, for comparison with what the receiver calls. */
  readonly call: string;
  readonly bytes: Uint8Array;
}

/** Delivers messages between ranks of one process, and keeps time for deadlines. */
export interface Network {
  /** Delivers a message, or loses it. */
  send(message: Message, deliver: (message: Message) => void): void;
  /** Calls `act` after so many milliseconds of its clock, unless cancelled. */
  after(milliseconds: number, act: () => void): () => void;
}

/** Delivers in the next microtask, and loses nothing. */
export const promptNetwork = (): Network => ({
  send: (message, deliver) => queueMicrotask(() => deliver(message)),
  after(milliseconds, act) {
    const timer = setTimeout(act, milliseconds);
    return () => clearTimeout(timer);
  },
});
