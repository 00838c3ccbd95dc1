import { requireCarrier } from "../arguments.js";
import type { Carrier } from "../carrier.js";

/** Mean and biased variance of rows, one of each for a channel. */
interface Moments {
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** What a rank has sent. */
interface Sent {
  readonly rows: number;
  readonly numbers: Float32Array;
}

/** The number of rows, before the numbers of a rank. */
const headerBytes = 8;

/**
 * What the batch norms of a model exchange, so that all ranks normalise by the whole batch: for `syncBatchNorm(model, exchange)` of
 * `@halfstep/nn`. Ranks may have different numbers of rows.
 *
 * Each exchange is one collective, in which a rank sends 8 bytes and two numbers a channel to every other rank. All ranks compute the same
 * bits from what they receive: in float64, in the order of ranks.
 *
 * @example
 * syncBatchNorm(model, new StatisticsExchange(carrier));
 */
export class StatisticsExchange {
  /** Set it to false before a batch is recorded that only repeats samples of other ranks: it has no part in statistics then. */
  isCounted = true;
  readonly #carrier: Carrier;

  constructor(carrier: Carrier) {
    requireCarrier("new StatisticsExchange(carrier)", carrier);
    this.#carrier = carrier;
  }

  /**
   * Replaces mean and biased variance of the `rows` rows of this rank by those of all ranks (Chan, Golub and LeVeque 1983). Resolves to the
   * number of all rows.
   */
  async merge({ mean, variance }: Moments, rows: number, label: string): Promise<number> {
    const channels = mean.length;
    const own = new Float32Array(2 * channels);
    own.set(mean);
    own.set(variance, channels);
    const parts = await this.#gathered(own, rows, label);
    const all = parts.reduce((sum, part) => sum + part.rows, 0);
    for (let c = 0; c < channels; c++) {
      let sum = 0;
      for (const part of parts) sum += part.rows * (part.numbers[c] as number);
      const centre = sum / all;
      let squares = 0;
      for (const part of parts) {
        const distance = (part.numbers[c] as number) - centre;
        squares += part.rows * ((part.numbers[channels + c] as number) + distance ** 2);
      }
      mean[c] = centre;
      variance[c] = squares / all;
    }
    return all;
  }

  /** Replaces sums over the `rows` rows of this rank by the mean of the sums of all ranks, weighted by their rows. */
  async average(sums: Float32Array, rows: number, label: string): Promise<void> {
    const parts = await this.#gathered(sums, rows, label);
    const all = parts.reduce((sum, part) => sum + part.rows, 0);
    for (let i = 0; i < sums.length; i++) {
      let sum = 0;
      for (const part of parts) sum += part.rows * (part.numbers[i] as number);
      sums[i] = sum / all;
    }
  }

  /** The numbers of all ranks that have rows, in their order. */
  async #gathered(numbers: Float32Array, rows: number, label: string): Promise<readonly Sent[]> {
    const own = new Uint8Array(headerBytes + numbers.byteLength);
    new Float64Array(own.buffer, 0, 1)[0] = rows;
    new Float32Array(own.buffer, headerBytes).set(numbers);
    const all = new Uint8Array(own.length * this.#carrier.size);
    await this.#carrier.allGather(own, all, { label });
    return Array.from({ length: this.#carrier.size }, (_, rank) => {
      const { buffer } = all.slice(rank * own.length, (rank + 1) * own.length);
      const [sent = 0] = new Float64Array(buffer, 0, 1);
      return { rows: sent, numbers: new Float32Array(buffer, headerBytes) };
    }).filter((part) => part.rows > 0);
  }
}
