import type { Binding, HalfDType } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { fill } from "@halfstep/kernels";
import {
  defineHostOp,
  type FlatVariables,
  type HostFunction,
  type HostOp,
  hostLaunch,
  type Runtime,
  type Storage,
} from "@halfstep/tensor/functional";
import { packed } from "../gradients/packed.js";
import { allFinite } from "../wire/all-finite.js";
import type { Range } from "../wire/chunk.js";
import type { Exchange } from "../wire/exchange.js";
import { sumOfSquares } from "../wire/sum-of-squares.js";
import { ParameterGather, type Run } from "./parameter-gather.js";
import { type OwnPart, partsOf, stripesOf } from "./stripes.js";

/** What divides parameters among ranks. */
export interface ShardSetting {
  readonly exchange: Exchange;
  /** Stripes of a large group, which are exchanged one after another. */
  readonly buckets: number;
  /** Groups of at most so many bytes are one stripe. */
  readonly leastBytes: number;
}

/** What all gradients of a step have in common. */
export interface AverageOptions {
  readonly weight: number | undefined;
  /** Tells which parameters have gradients. */
  readonly contents: number;
}

/** The exchanges of gradients in one step. */
export interface ShardedStep extends AverageOptions {
  /** What stands for the gradients of the other ranks, of all groups. */
  readonly others: Binding<Storage>;
  /** By group, the sum of the squares of the means that this rank has so far. */
  readonly squares: Float64Array;
  /** 1 where a gradient or mean of this rank is infinite or NaN. */
  nonFinite: number;
  /** Stripes that are still to come. */
  missing: number;
  /** Computes what stands for the gradients of the other ranks. */
  readonly agree: (others: Float32Array) => Promise<void>;
}

/** The setting of one group. */
interface GroupSetting extends ShardSetting {
  readonly params: FlatVariables;
  readonly index: number;
  readonly others: Binding<Storage>;
}

/**
 * A group of flat parameters of which this rank owns a part: `Shard` of `@halfstep/optim`. It is divided into stripes, and each stripe into
 * a chunk for each rank, so that all ranks send equally many bytes in every exchange.
 */
export class ParameterShard {
  /** What this rank owns. */
  readonly parts: readonly OwnPart[];
  /** Stands for the gradients of the other ranks. */
  readonly others: Binding<Storage>;
  readonly stripes: readonly Range[];
  readonly #setting: GroupSetting;
  readonly #runtime: Runtime;
  readonly #values: Binding<Storage>;
  readonly #ops: readonly HostOp[];
  readonly #gather: ParameterGather;
  /** What each rank owns. */
  readonly #owned: readonly (readonly OwnPart[])[];
  /** Segments that steps read as they are, and the formats to which they round others. */
  readonly #readWhole = new Set<number>();
  readonly #roundings = new Set<HalfDType>();
  /** Whether values of other ranks were rounded on their way here. */
  #isRounded = false;
  #isAveraged = false;

  constructor(runtime: Runtime, setting: GroupSetting) {
    const { params, index, others, exchange, buckets, leastBytes } = setting;
    const { carrier } = exchange;
    const ranks = carrier.members("world");
    const length = lengthOf(params);
    const isSmall = length * 4 <= leastBytes;
    this.others = others;
    this.stripes = stripesOf(length, isSmall ? 1 : buckets, ranks.length);
    this.#setting = setting;
    this.#runtime = runtime;
    this.#values = { buffer: params.values, offset: 0, length, dtype: params.dtype };
    const chunks = ranks.map((rank) => this.stripes.map((range) => exchange.chunkOf(range, rank)));
    this.#owned = chunks.map(partsOf);
    this.parts = this.#owned[carrier.rank] as readonly OwnPart[];
    this.#ops = this.stripes.map((stripe, i) =>
      this.#opOf(stripe, chunks[carrier.rank]?.[i] as Range, isSmall),
    );
    this.#gather = new ParameterGather({
      ...{ target: runtime.target, exchange, values: this.#values, owned: this.#owned },
      label: `parameters of group ${index}`,
    });
  }

  /** Whether the present gradients are means already. */
  get isAveraged(): boolean {
    return this.#isAveraged;
  }

  /** Whether a parameter has a gradient in this step. */
  get hasGradient(): boolean {
    const { params } = this.#setting;
    return params.segments.some((_, segment) => params.hasGradient(segment));
  }

  /** Records that this rank gets the means of the gradients that it owns, behind the forward and backward pass of the step. */
  reduce(step: ShardedStep): void {
    const { target } = this.#runtime;
    this.#isAveraged = true;
    target.onRollback(() => {
      this.#isAveraged = false;
    });
    this.#noteReads();
    const { params } = this.#setting;
    for (const [segment, place] of params.segments.entries())
      if (!params.hasGradient(segment)) target.launch(fill(this.#gradients(placeOf(place)), 0));
    for (const [i, stripe] of this.stripes.entries()) {
      const op = this.#ops[i] as HostOp;
      const label = `stripe ${i + 1} of ${this.stripes.length} of group ${this.#setting.index}`;
      const bindings = [this.#gradients(stripe), step.others];
      target.launch(hostLaunch(op, bindings, this.#functionOf(step, label)));
    }
  }

  /**
   * Records that all ranks get the values of all: in 16 bits where steps read no others.
   * @throws TypeError where gradients were not averaged: each rank would have stepped its part by its own
   */
  share(): void {
    if (this.hasGradient && !this.#isAveraged)
      throw new TypeError(
        'mode "zero1": call reduce() of the exchange before the step of the optimizer: each rank has gradients of its own samples',
      );
    this.#isAveraged = false;
    const runs = this.#runs();
    this.#isRounded ||= runs.some(({ rounding }) => rounding);
    this.#gather.record(runs);
  }

  /** Records that all ranks get the values of all as they are. */
  complete(): void {
    if (!this.#isRounded) return;
    this.#isRounded = false;
    this.#gather.record([{ offset: 0, length: this.#values.length, rounding: undefined }]);
  }

  /** The elements of all ranks in a buffer of which each has those of its parts. */
  async collect<T extends Float32Array | Uint32Array>(own: T, perElement: number): Promise<T> {
    const { exchange, index } = this.#setting;
    const wordsOf = (length: number): number => Math.ceil(length * perElement);
    const lengths = this.#owned.map((parts) =>
      parts.reduce((most, { at, length }) => Math.max(most, wordsOf(at + length)), 0),
    );
    const send = new Uint32Array(Math.max(...lengths));
    send.set(new Uint32Array(own.buffer, own.byteOffset, lengths[exchange.carrier.rank]));
    const received = await exchange.collect(
      new Uint8Array(send.buffer),
      `the optimizer's state of group ${index}`,
    );
    const whole = new Uint8Array(wordsOf(this.#values.length) * 4);
    for (const [rank, parts] of this.#owned.entries())
      for (const { offset, length, at } of parts) {
        const start = at * perElement * 4;
        const bytes = received(rank).subarray(start, start + wordsOf(length) * 4);
        whole.set(bytes, offset * perElement * 4);
      }
    return (
      own instanceof Float32Array ? new Float32Array(whole.buffer) : new Uint32Array(whole.buffer)
    ) as T;
  }

  #gradients({ offset, length }: Range): Binding<Storage> {
    const { gradients } = this.#setting.params;
    return { buffer: gradients, offset: offset * 4, length, dtype: "float32" };
  }

  /** The op by which this rank gets its chunk of a stripe. */
  #opOf(stripe: Range, chunk: Range, isSmall: boolean): HostOp {
    const { format } = this.#setting.exchange;
    const role = (name: string, access: "read" | "write") => ({ name, access }) as const;
    return defineHostOp({
      name: "average gradients",
      bindings: [
        { name: "gradients", access: "readwrite", dtypes: ["float32"] },
        { name: "others", access: "write", dtypes: ["float32"] },
      ],
      division: {
        parts: 1,
        // A small group, such as biases, waits for the last of its gradients anyway.
        leastBytes: isSmall ? Number.MAX_SAFE_INTEGER : 0,
        carry<B>(
          x: Binding<B>,
          allocate: (bytes: number) => B,
          _: unknown,
          rest: readonly Binding<B>[],
        ) {
          const means = {
            ...x,
            offset: x.offset + (chunk.offset - stripe.offset) * 4,
            length: chunk.length,
          };
          const results = [
            { binding: rest[0] as Binding<B>, role: role("others", "write") },
            { binding: means, role: role("means", "write") },
          ];
          if (format === "float32") {
            const numbers = { binding: x, role: role("gradients", "read") };
            return { before: [], operands: [...results, numbers], after: [] };
          }
          const { before, codes, header } = packed(x, format, allocate);
          const numbers = [
            { binding: codes, role: role("codes", "read") },
            { binding: header, role: role("header", "read") },
          ];
          return { before, operands: [...results, ...numbers], after: [] };
        },
      },
    });
  }

  #functionOf(step: ShardedStep, label: string): HostFunction {
    const { exchange, index } = this.#setting;
    return async ([others, means, numbers, header], { length }) => {
      if (!others || !means || !numbers) return;
      const out = new Float32Array(means.buffer, means.byteOffset, means.length / 4);
      const options = { label, weight: step.weight, contents: step.contents, out };
      let own: Float32Array;
      if (header) {
        const words = new Int32Array(header.buffer, 0, 2);
        if (step.weight !== 0) step.nonFinite |= words[1] as number;
        const codes = new Uint16Array(numbers.buffer, 0, length);
        own = await exchange.ownMeanOfCodes(codes, words[0] as number, options);
      } else {
        const values = new Float32Array(numbers.buffer, 0, length);
        if (step.weight !== 0 && !(await allFinite(values))) step.nonFinite = 1;
        own = await exchange.ownMean(values, options);
      }
      const squares = await sumOfSquares(own);
      if (Number.isFinite(squares)) step.squares[index] = (step.squares[index] as number) + squares;
      else step.nonFinite = 1;
      step.missing--;
      if (step.missing === 0)
        await step.agree(new Float32Array(others.buffer, 0, step.others.length));
    };
  }

  /**
   * Notes how this step has read the values so far. What was once read as it is always travels so.
   * @throws TypeError where this step has read other bits than those in which it has values of other ranks
   */
  #noteReads(): void {
    const known = this.#readWhole.size + this.#roundings.size;
    const { bindings, copies } = this.#runtime.target.readsOf(this.#values.buffer);
    for (const format of copies) this.#roundings.add(format);
    for (const [segment, place] of this.#setting.params.segments.entries()) {
      if (this.#readWhole.has(segment)) continue;
      const { offset, length } = placeOf(place);
      const [start, end] = [offset, offset + length].map((at) => bytesFor(this.#values.dtype, at));
      const isRead = bindings.some(
        (binding) =>
          binding.offset < (end as number) &&
          (start as number) < binding.offset + bytesFor(binding.dtype, binding.length),
      );
      if (isRead) this.#readWhole.add(segment);
    }
    if (this.#isRounded && this.#readWhole.size + this.#roundings.size > known)
      throw new TypeError(
        'mode "zero1": this step reads parameters in another format than those before, of which ranks have rounded ones: call await complete() of the exchange before it',
      );
  }

  /** The ranges of the values, each with the format in which it travels. */
  #runs(): readonly Run[] {
    const [format, ...more] = this.#roundings;
    const isRounded = this.#values.dtype === "float32" && more.length === 0;
    const starts: { readonly offset: number; readonly rounding: HalfDType | undefined }[] = [];
    for (const [segment, { offset }] of this.#setting.params.segments.entries()) {
      const rounding = isRounded && !this.#readWhole.has(segment) ? format : undefined;
      if (starts.length === 0 || starts.at(-1)?.rounding !== rounding)
        starts.push({ offset, rounding });
    }
    return starts.map((start, i) => {
      const end = starts[i + 1]?.offset ?? this.#values.length;
      return { ...start, length: end - start.offset };
    });
  }
}

interface Segment {
  readonly offset: number;
  readonly shape: readonly number[];
}

const placeOf = ({ offset, shape }: Segment): Range => ({
  offset,
  length: shape.reduce((size, extent) => size * extent, 1),
});

/** Elements of a flat buffer: up to the end of its last segment. */
const lengthOf = ({ segments }: FlatVariables): number =>
  Math.max(...segments.map(placeOf).map(({ offset, length }) => offset + length));
