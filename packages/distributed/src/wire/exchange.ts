import {
  requireCarrier,
  requireFloats,
  requireOptions,
  requireWeight,
  requireWire,
} from "../arguments.js";
import type { Carrier } from "../carrier.js";
import { hashOf } from "../hash.js";
import { scale, scaleTo } from "./arithmetic.js";
import { Breath } from "./breath.js";
import { chunkOf, keptUnit, placesOf, type Range } from "./chunk.js";
import { copyTo } from "./copy.js";
import { type MemoryPool, memoryPool, type NumberPool, numberPool } from "./pool.js";
import {
  chunkLength,
  type Division,
  type Exchanging,
  pieces,
  scatter,
  scatterMean,
} from "./scatter-mean.js";
import { largestExponent, shiftFor } from "./shift.js";
import { codesSource, partOf, type Source, scaledSource } from "./source.js";
import { bytesOf, type Level, levelsOf, load, store, type Wire, type WireFormat } from "./wire.js";

/** Options of exchanges. */
export interface ExchangeOptions {
  /** The format in which numbers travel. Default "auto": float16 between hosts, float32 within a host. */
  readonly wire?: Wire | undefined;
  /** Exchanges in float32 whatever `wire` is, as apex's option does. Default false. */
  readonly alwaysFloat32?: boolean | undefined;
  /**
   * Divides by this number before the exchange and multiplies by it afterwards, as apex's option does. Sums are float32 and numbers are
   * shifted into the range of the wire, so that it is not needed. Default 1.
   */
  readonly predivide?: number | undefined;
}

/** Options of one exchange. */
export interface MeanOptions {
  /** The weight of this rank, such as its number of samples. Default 1. */
  readonly weight?: number | undefined;
  /** The bucket, for errors. */
  readonly label?: string | undefined;
  /** Tells what is averaged, such as a hash of its names, from 0 to 2^31 − 1: it fails where ranks give others. Default 0. */
  readonly contents?: number | undefined;
  /** One word, whose lower 16 bits travel with the numbers: it gets those that any rank has set. All ranks give it, or none. Default: none. */
  readonly flags?: Int32Array | undefined;
}

/** Options of the means of one rank's chunk. */
export interface OwnMeanOptions extends MeanOptions {
  /** Where the means are written, at least as long as the chunk. Default: a new array. */
  readonly out?: Float32Array | undefined;
}

/** The names of {@link ExchangeOptions}. */
export const exchangeOptions: readonly (keyof ExchangeOptions)[] = [
  ...(["wire", "alwaysFloat32", "predivide"] as const),
];

/** Elements of the chunk of one rank: a bucket with longer ones is exchanged in slices. */
const sliceOfRank = 1 << 21;

/** Elements of the longest bucket of which two ranks compute all means: of longer ones, the sums take longer than a collective begins. */
const longestWhole = 1 << 19;

/** A bucket that is exchanged in slices. */
interface SlicedBucket extends MeanOptions {
  readonly bucket: Source;
  readonly sliceLength: number;
}

/** The means of the chunk of one rank. */
interface Scattered {
  readonly numbers: Float32Array;
  readonly shift: number;
  readonly lengths: number[];
}

/** Options of the first half of an exchange. */
interface ScatterOptions extends MeanOptions {
  /** Elements: chunks begin at multiples of it. */
  readonly unit?: number;
  /** The division of the last level. Default "chunks". */
  readonly division?: Division;
}

/**
 * Averages numbers over all ranks. A bucket is cut into one chunk for each rank: each rank receives its chunk from all others, sums it in
 * float32, rounds the mean once to the format of the wire, and sends it to all. All ranks get the same bits.
 *
 * Two ranks, or two hosts, send each other the whole bucket instead, and each of them computes all means: the same bytes and bits in one
 * collective instead of two. Long buckets are exchanged in chunks by them, too, because their sums take longer than that saves.
 *
 * Numbers are multiplied by a power of two for 16-bit wires, so that the largest of a bucket is finite: see the README.
 */
export class Exchange {
  readonly carrier: Carrier;
  readonly predivide: number;
  readonly #levels: readonly Level[];
  readonly #pool: MemoryPool;
  readonly #numberPool: NumberPool = numberPool();
  /** Tells the options, which have to be the same on all ranks. */
  readonly #setting: number;
  #queue: Promise<unknown> = Promise.resolve();

  /** @throws RangeError for unknown options, wires, and a `predivide` that is no number above 0 */
  constructor(carrier: Carrier, options: ExchangeOptions = {}) {
    const call = "new Exchange(carrier, { wire?, alwaysFloat32?, predivide? })";
    requireCarrier(call, carrier);
    requireOptions(call, options, exchangeOptions);
    const { wire = "auto", alwaysFloat32 = false, predivide = 1 } = options;
    requireWire(wire);
    if (!(predivide > 0) || !Number.isFinite(predivide))
      throw new RangeError(`predivide is ${predivide}: it must be a number above 0`);
    this.carrier = carrier;
    this.predivide = predivide;
    this.#levels = levelsOf(alwaysFloat32 ? "float32" : wire, carrier.hosts);
    this.#setting = hashOf(`${this.#levels.map(({ format }) => format)} ${predivide}`);
    this.#pool = memoryPool(carrier);
  }

  /** The format of the means, in which a packer should store its numbers. */
  get format(): WireFormat {
    return (this.#levels.at(-1) as Level).format;
  }

  /** Replaces numbers by their mean over all ranks. On failure they keep their values. */
  async mean(values: Float32Array, options: MeanOptions = {}): Promise<void> {
    requireFloats("mean(values)", values);
    requireWeight(options.weight);
    return this.#inTurn(async (breath) => {
      const { format } = this;
      const shift = format === "float32" ? 0 : shiftFor(await largestExponent(values, breath));
      const source = scaledSource(values, shift, 2 ** shift / this.predivide);
      const { bytes, shift: common } = await this.#exchange(source, breath, options);
      const factor = 2 ** -common * this.predivide;
      for (const { offset, count } of pieces(values.length)) {
        const piece = values.subarray(offset, offset + count);
        load(bytes.subarray(offset * bytesOf(format)), format, piece);
        if (factor !== 1) scale(piece, factor);
        await breath.after(count);
      }
      this.#pool.give(bytes);
    });
  }

  /**
   * Replaces codes of the format {@link Exchange.format}, which a GPU has packed, by those of their mean over all ranks.
   * `shift` is the power of two by which the numbers were multiplied. The result is that of the means, the same on all ranks.
   * @throws TypeError where the format is float32
   */
  meanOfCodes(codes: Uint16Array, shift: number, options: MeanOptions = {}): Promise<number> {
    const { format } = this;
    if (format === "float32") throw new TypeError("meanOfCodes: the wire is float32: use mean()");
    return this.#inTurn(async (breath) => {
      const source = codesSource(codes, shift, format);
      const { bytes, shift: common } = await this.#exchange(source, breath, options);
      await copyTo(codes, new Uint16Array(bytes.buffer, bytes.byteOffset, codes.length), breath);
      this.#pool.give(bytes);
      return common;
    });
  }

  /**
   * The means of this rank's chunk of a bucket: see {@link chunkOf}. They are not rounded.
   * @throws RangeError where `out` is shorter than the chunk
   */
  async ownMean(values: Float32Array, options: OwnMeanOptions = {}): Promise<Float32Array> {
    requireFloats("ownMean(values)", values);
    requireWeight(options.weight);
    return this.#inTurn(async (breath) => {
      const { format } = this;
      const shift = format === "float32" ? 0 : shiftFor(await largestExponent(values, breath));
      const source = scaledSource(values, shift, 2 ** shift / this.predivide);
      return this.#ownMean(source, breath, { ...options, factor: this.predivide });
    });
  }

  /** {@link ownMean} of codes of the format {@link Exchange.format}, times `2^shift`. */
  ownMeanOfCodes(
    codes: Uint16Array,
    shift: number,
    options: OwnMeanOptions = {},
  ): Promise<Float32Array> {
    const { format } = this;
    if (format === "float32") throw new TypeError("ownMeanOfCodes: the wire is float32");
    return this.#inTurn((breath) =>
      this.#ownMean(codesSource(codes, shift, format), breath, options),
    );
  }

  /** The chunk of a bucket of which a rank gets the means. */
  chunkOf(bucket: Range, rank: number): Range {
    return chunkOf(bucket, rank, this.#levels, this.carrier.hosts);
  }

  /** Collects equally many bytes of every rank. Where hosts have several ranks, a host sends its bytes once to each other host. */
  collect(own: Uint8Array, label: string): Promise<(rank: number) => Uint8Array> {
    return this.#inTurn(async () => {
      const { carrier } = this;
      let bytes = own;
      for (const { scope } of [...this.#levels].reverse()) {
        const receive = carrier.allocate(bytes.length * carrier.members(scope).length);
        await carrier.allGather(bytes, receive, { scope, label });
        bytes = receive;
      }
      const places = placesOf(this.#levels, carrier);
      return (rank) => {
        const start = (places.get(rank) as number) * own.length;
        return bytes.subarray(start, start + own.length);
      };
    });
  }

  /** @param options with what the numbers of the source were divided by */
  async #ownMean(
    source: Source,
    breath: Breath,
    options: OwnMeanOptions & { readonly factor?: number },
  ): Promise<Float32Array> {
    const { length } = this.chunkOf({ offset: 0, length: source.length }, this.carrier.rank);
    const { out = new Float32Array(length), factor: divided = 1 } = options;
    if (out.length < length)
      throw new RangeError(`out has ${out.length} elements: the chunk of this rank has ${length}`);
    const { numbers, shift } = await this.#scatter(source, breath, { ...options, unit: keptUnit });
    const factor = 2 ** -shift * divided;
    for (const { offset, count } of pieces(numbers.length)) {
      const place = out.subarray(offset, offset + count);
      scaleTo(place, numbers.subarray(offset, offset + count), factor);
      await breath.after(count);
    }
    this.#numberPool.give(numbers);
    return out.subarray(0, numbers.length);
  }

  /** Runs exchanges one after another: how long each prepares its bytes differs between ranks, and the order must not. */
  #inTurn<T>(exchange: (breath: Breath) => Promise<T>): Promise<T> {
    const done = this.#queue.then(() => exchange(new Breath()));
    this.#queue = done.catch(() => {});
    return done;
  }

  /** The means of a bucket in the format of the last level, and their shift. */
  async #exchange(
    bucket: Source,
    breath: Breath,
    options: MeanOptions,
  ): Promise<{ readonly bytes: Uint8Array; readonly shift: number }> {
    const exchanging = this.#exchanging(breath, options);
    const [level, inner] = this.#levels as readonly [Level, Level?];
    const sliceLength = sliceOfRank * this.carrier.size;
    if (!inner && bucket.length > sliceLength)
      return this.#exchangeSlices(exchanging, level, { ...options, bucket, sliceLength });
    const division = this.#divisionOf(bucket);
    const scattered = await this.#scatter(bucket, breath, { ...options, division });
    const { numbers: own, shift, lengths } = scattered;
    let bytes = this.#pool.take(own.length * bytesOf(this.format));
    await this.#store(own, bytes, breath);
    this.#numberPool.give(own);
    const gathered = division === "whole" ? this.#levels.slice(0, -1) : this.#levels;
    for (const [i, each] of [...gathered.entries()].reverse())
      bytes = await this.#gather(exchanging, each, bytes, lengths[i] as number);
    return { bytes, shift };
  }

  /** The division of a bucket at the last level: two members send each other all that they have. */
  #divisionOf({ length }: Source): Division {
    const { scope } = this.#levels.at(-1) as Level;
    const isWhole = length <= longestWhole && this.carrier.members(scope).length === 2;
    return isWhole ? "whole" : "chunks";
  }

  /**
   * {@link #exchange} of a long bucket in one level. Its slices travel while the means of those before are computed. All ranks call their
   * collectives in one order: chunks of slices 0 and 1, means of 0, chunks of 2, means of 1, and so on.
   */
  async #exchangeSlices(
    exchanging: Exchanging,
    level: Level,
    { bucket, sliceLength, weight = 1 }: SlicedBucket,
  ): Promise<{ readonly bytes: Uint8Array; readonly shift: number }> {
    const { carrier, pool, breath, label } = exchanging;
    const { scope } = level;
    const size = bytesOf(this.format);
    const slices: Range[] = [];
    for (let offset = 0; offset < bucket.length; offset += sliceLength)
      slices.push({ offset, length: Math.min(sliceLength, bucket.length - offset) });
    const begin = async (slice: Range | undefined) => {
      const source = slice && partOf(bucket, slice.offset, slice.length);
      return source && scatter(exchanging, level, { source, weight });
    };
    // Gathered chunks may be longer than the last slice.
    const lengths = slices.map(({ length }) => chunkLength(length, carrier.size) * carrier.size);
    const bytes = pool.take(((slices.at(-1) as Range).offset + (lengths.at(-1) as number)) * size);
    const gathers: Promise<void>[] = [];
    let { shift } = bucket;
    let arriving = await begin(slices[0]);
    for (const [i, { offset }] of slices.entries()) {
      const next = await begin(slices[i + 1]);
      const own = await (arriving as NonNullable<typeof arriving>)();
      arriving = next;
      shift = own.shift;
      const length = (lengths[i] as number) * size;
      const send = pool.take(length / carrier.size);
      await this.#store(own.numbers, send, breath);
      this.#numberPool.give(own.numbers);
      const receive = bytes.subarray(offset * size, offset * size + length);
      const gathered = carrier
        .allGather(send, receive, { scope, label })
        .then(() => pool.give(send));
      // It is awaited below, unless another collective fails first.
      gathered.catch(() => {});
      gathers.push(gathered);
    }
    await Promise.all(gathers);
    breath.begin();
    return { bytes, shift };
  }

  #exchanging(breath: Breath, { label, flags, contents = 0 }: MeanOptions): Exchanging {
    const [pool, numberPool] = [this.#pool, this.#numberPool];
    const agreed = contents ^ this.#setting;
    return { carrier: this.carrier, pool, numberPool, breath, label, flags, contents: agreed };
  }

  /** Stores numbers in the format of the last level. */
  async #store(numbers: Float32Array, bytes: Uint8Array, breath: Breath): Promise<void> {
    for (const { offset, count } of pieces(numbers.length)) {
      const place = bytes.subarray(offset * bytesOf(this.format));
      store(numbers.subarray(offset, offset + count), this.format, place);
      await breath.after(count);
    }
  }

  /** The means of this rank's chunk times `2^shift`, and the lengths of what is divided at each level. */
  async #scatter(
    bucket: Source,
    breath: Breath,
    { unit, division, ...options }: ScatterOptions,
  ): Promise<Scattered> {
    const exchanging = { ...this.#exchanging(breath, options), unit };
    const lengths: number[] = [];
    let source = bucket;
    let { weight = 1 } = options;
    let numbers: Float32Array = new Float32Array();
    for (const [i, level] of this.#levels.entries()) {
      lengths.push(source.length);
      const isLast = i === this.#levels.length - 1;
      const contribution = { source, weight, ...(isLast && division && { division }) };
      const part = await scatterMean(exchanging, level, contribution);
      if (i > 0) this.#numberPool.give(numbers);
      numbers = part.numbers;
      weight = part.weight;
      source = scaledSource(numbers, part.shift, 1);
    }
    return { numbers, shift: source.shift, lengths };
  }

  /** Collects the chunks of all members of a level: the bytes of `length` elements. Gives `own` back to the pool. */
  async #gather(
    { carrier, pool, breath, label }: Exchanging,
    { scope }: Level,
    own: Uint8Array,
    length: number,
  ): Promise<Uint8Array> {
    const size = bytesOf(this.format);
    const members = carrier.members(scope).length;
    const chunk = chunkLength(length, members) * size;
    const send = pool.take(chunk);
    await copyTo(send, own, breath);
    pool.give(own);
    const receive = pool.take(chunk * members);
    await carrier.allGather(send, receive, { scope, label });
    breath.begin();
    pool.give(send);
    if (receive.length === length * size) return receive;
    const bytes = pool.take(length * size);
    await copyTo(bytes, receive.subarray(0, bytes.length), breath);
    pool.give(receive);
    return bytes;
  }
}
