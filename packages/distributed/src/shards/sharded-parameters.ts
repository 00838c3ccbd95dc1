import type { Binding } from "@halfstep/device";
import type { FlatVariables, Runtime, Storage } from "@halfstep/tensor/functional";
import type { StopRequest } from "../gradients/agreed-stop.js";
import type { Exchange } from "../wire/exchange.js";
import {
  type AverageOptions,
  ParameterShard,
  type ShardedStep,
  type ShardSetting,
} from "./parameter-shard.js";

const largestFloat32 = 3.4028234663852886e38;

/** Elements between the stand-ins of groups: a binding begins at a multiple of 256 bytes. */
const slot = 64;

/** Groups of flat parameters that are divided among all ranks, whose gradients are averaged together. */
export class ShardedParameters {
  readonly shards: readonly ParameterShard[];
  readonly #runtime: Runtime;
  readonly #exchange: Exchange;
  /** The stand-ins of all groups. */
  readonly #others: Binding<Storage>;

  constructor(runtime: Runtime, groups: readonly FlatVariables[], setting: ShardSetting) {
    this.#runtime = runtime;
    this.#exchange = setting.exchange;
    const length = groups.length * slot;
    const buffer = runtime.target.allocateResident(length * 4);
    this.#others = { buffer, offset: 0, length, dtype: "float32" };
    this.shards = groups.map((params, index) => {
      const others = { ...this.#others, offset: index * slot * 4, length: 4 };
      return new ParameterShard(runtime, { params, index, others, ...setting });
    });
  }

  /** Records that each rank gets the means of the gradients that it owns, and what stands for those of the others. */
  reduce(options: AverageOptions, stop: StopRequest): void {
    const present = this.shards.filter(({ hasGradient }) => hasGradient);
    if (present.some(({ isAveraged }) => isAveraged))
      throw new TypeError(
        "the gradients are averaged already, and no step was taken since: call reduce() once a step, with accumulation in the last micro-step",
      );
    const step: ShardedStep = {
      ...options,
      others: this.#others,
      squares: new Float64Array(this.shards.length),
      nonFinite: 0,
      missing: present.reduce((sum, { stripes }) => sum + stripes.length, 0),
      agree: (others) => this.#agree(step, stop, others),
    };
    for (const shard of present) shard.reduce(step);
  }

  /** Gives all ranks the float32 values of all parameters, of which they have had rounded ones. Outside steps, on all ranks. */
  async complete(): Promise<void> {
    await this.#runtime.step(() => {
      for (const shard of this.shards) shard.complete();
    });
  }

  /** Computes what stands for the gradients of the other ranks: one small exchange. */
  async #agree(
    { nonFinite, squares }: ShardedStep,
    stop: StopRequest,
    others: Float32Array,
  ): Promise<void> {
    const own = Float64Array.of(nonFinite, stop.wanted, ...squares);
    const received = await this.#exchange.collect(
      new Uint8Array(own.buffer),
      "the norms of gradients",
    );
    const { rank, size } = this.#exchange.carrier;
    const sums = new Float64Array(own.length);
    for (let other = 0; other < size; other++) {
      const found = new Float64Array(received(other).slice().buffer);
      // Its own gradients need no stand-in.
      const counted = other === rank ? found.subarray(0, 2) : found;
      for (const [i, value] of counted.entries()) sums[i] = (sums[i] as number) + value;
    }
    stop.agreed(sums[1] !== 0);
    const isBad = sums[0] !== 0;
    others.fill(0);
    for (const index of squares.keys())
      others[index * slot] = isBad
        ? Number.NaN
        : Math.min(Math.sqrt(sums[index + 2] as number), largestFloat32);
  }
}
