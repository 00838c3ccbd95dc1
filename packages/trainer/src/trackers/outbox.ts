/** Options of an outbox. */
interface OutboxOptions<Item> {
  /** Sends items, in order. It rejects where they did not arrive. */
  readonly send: (items: readonly Item[], signal: AbortSignal) => Promise<void>;
  /** Called with the first failure. */
  readonly onFailure: (error: Error) => void;
  /** The most items of a call. */
  readonly most: number;
  /** Milliseconds between two calls. */
  readonly every: number;
  /** Milliseconds that a call may take, also the last one. */
  readonly patience: number;
}

/** The most items that wait for a server that is away: older ones are dropped. */
const longest = 100_000;

/**
 * Sends items to a server beside training: one call at a time, at intervals. What did not arrive is sent again with the next call. Nothing
 * of it waits or throws.
 */
export class Outbox<Item> {
  readonly #options: OutboxOptions<Item>;
  readonly #timer: NodeJS.Timeout;
  #items: Item[] = [];
  #underWay: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: OutboxOptions<Item>) {
    this.#options = options;
    // A program may end while it waits.
    this.#timer = setInterval(() => void this.#flush(), options.every).unref();
  }

  add(...items: readonly Item[]): void {
    this.#items.push(...items);
    if (this.#items.length > longest) this.#items.splice(0, this.#items.length - longest);
  }

  /** Sends the rest, within the time of one call. Returns how many items did not arrive. */
  async close(): Promise<number> {
    clearInterval(this.#timer);
    const ended = AbortSignal.timeout(this.#options.patience);
    await this.#underWay;
    while (this.#items.length > 0 && (await this.#sendNext(ended)));
    return this.#items.length;
  }

  #flush(): Promise<void> {
    this.#underWay ??= this.#sendAll().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #sendAll(): Promise<void> {
    const ended = AbortSignal.timeout(this.#options.patience);
    while (this.#items.length > 0 && (await this.#sendNext(ended)));
  }

  /** Whether the next items arrived. */
  async #sendNext(signal: AbortSignal): Promise<boolean> {
    const items = this.#items.slice(0, this.#options.most);
    try {
      await this.#options.send(items, signal);
      this.#items = this.#items.slice(items.length);
      return true;
    } catch (error) {
      if (!this.#hasFailed) this.#options.onFailure(error as Error);
      this.#hasFailed = true;
      return false;
    }
  }
}
