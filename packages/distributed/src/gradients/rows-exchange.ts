import type { AddedRows, CarriedPart, HostPart, RowStage } from "@halfstep/tensor/functional";
import { allFinite } from "../wire/all-finite.js";
import { scale } from "../wire/arithmetic.js";
import { Breath } from "../wire/breath.js";
import { copyTo } from "../wire/copy.js";
import type { Exchange, MeanOptions } from "../wire/exchange.js";
import { type MemoryPool, memoryPool } from "../wire/pool.js";
import { pieces } from "../wire/scatter-mean.js";
import { bytesOf, load, type WireFormat } from "../wire/wire.js";
import { packed } from "./packed.js";
import { decodeRows, encodeRows, messageBytes, type RowsLayout, weightIn } from "./rows-message.js";
import { addRows, countPlaces, type RowsOfBatch, rowsByPlace } from "./rows-of-batch.js";

type Operands = readonly Uint8Array<ArrayBuffer>[];

/** A gradient of which the rows of the batch are still to come. */
export interface BegunRows {
  /** The mean of all ranks where rows travel apart, else what this rank has, [places, width]. */
  readonly values: Float32Array;
  /** Most rows of a rank. */
  readonly capacity: number;
  readonly isFinite: boolean;
}

/**
 * Averages gradients of embeddings that a last product uses, too. What that product gives is computed early, and is averaged while the
 * backward pass goes on. The rows of the batch come last: ranks send each other those that their batches name, and all add them to the mean
 * in the order of ranks, so that all get the same bits.
 *
 * Where those rows would be more bytes than a mean of the whole gradient, the rest waits for the rows of its rank, and the whole is averaged.
 */
export class RowsExchange {
  readonly #exchange: Exchange;
  readonly #pool: MemoryPool;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#pool = memoryPool(exchange.carrier);
  }

  /** The launches and operands of a stage: `[index, numbers, header?]` of the rest, and `[index, rows, sum]` of the rows. */
  carry<B>(
    { sum, index, rows }: AddedRows<B>,
    stage: RowStage,
    allocate: (bytes: number) => B,
  ): CarriedPart<B> {
    const read = (name: string) => ({ name, access: "read" as const });
    const places = { binding: index, role: read("index") };
    if (stage === "rows") {
      const added = { binding: rows, role: read("rows") };
      const result = { binding: sum, role: { name: "gradients", access: "write" } as const };
      return { before: [], operands: [places, added, result], after: [] };
    }
    const { format } = this.#exchange;
    if (format === "float32") {
      const operands = [places, { binding: sum, role: read("gradients") }];
      return { before: [], operands, after: [] };
    }
    const { before, codes, header } = packed(sum, format, allocate);
    const numbers = { binding: codes, role: read("codes") };
    const operands = [places, numbers, { binding: header, role: read("header") }];
    return { before, operands, after: [] };
  }

  /** The stage "rest". */
  async begin(operands: Operands, part: HostPart, options: MeanOptions): Promise<BegunRows> {
    const [index, numbers, header] = operands as [Uint8Array, Uint8Array, Uint8Array?];
    const capacity = await this.#mostRows(wordsOf(index), part, options);
    const areApart = this.#travelApart(capacity, part);
    const memory = this.#pool.take(part.length * 4);
    const values = new Float32Array(memory.buffer, memory.byteOffset, part.length);
    const { format } = this.#exchange;
    if (header && format !== "float32") {
      const codes = new Uint16Array(numbers.buffer, numbers.byteOffset, part.length);
      const [own = 0, flag] = new Int32Array(header.buffer, header.byteOffset, 2);
      const shift = areApart ? await this.#exchange.meanOfCodes(codes, own, options) : own;
      await decode(numbers, format, values, 2 ** -shift);
      return { values, capacity, isFinite: flag === 0 };
    }
    await copyTo(values, numbersOf(numbers), new Breath());
    const begun = { values, capacity, isFinite: await allFinite(values) };
    if (areApart) await this.#exchange.mean(values, options);
    return begun;
  }

  /** The stage "rows", which writes the mean. Resolves to whether the rows of this rank are finite. */
  async end(
    begun: BegunRows | undefined,
    operands: Operands,
    part: HostPart,
    options: MeanOptions,
  ): Promise<boolean> {
    const [index, numbers, result] = operands as [Uint8Array, Uint8Array, Uint8Array];
    const sums = numbersOf(result);
    const capacity = begun?.capacity ?? (await this.#mostRows(wordsOf(index), part, options));
    const shape = shapeOf(part);
    const rows = await rowsByPlace(wordsOf(index), numbersOf(numbers), shape);
    if (begun) {
      const { values } = begun;
      await copyTo(sums, values, new Breath());
      this.#pool.give(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    } else sums.fill(0);
    if (this.#travelApart(capacity, part)) {
      const { format } = this.#exchange;
      const layout = { format, capacity, width: shape.width };
      await this.#addRowsOfAll(sums, rows, layout, options);
    } else {
      await addRows(sums, rows, 1);
      await this.#exchange.mean(sums, options);
    }
    return allFinite(rows.values);
  }

  /** Most rows of a rank: each place that its batch names is one. */
  async #mostRows(index: Uint32Array, part: HostPart, { label }: MeanOptions): Promise<number> {
    const counts = Int32Array.of(countPlaces(index, shapeOf(part).size));
    await this.#exchange.carrier.max(counts, { label: `rows in ${label}` });
    return counts[0] as number;
  }

  /** Whether the rows of all ranks are at most as many bytes as a mean, in which a rank sends and receives all but its own part twice. */
  #travelApart(capacity: number, part: HostPart): boolean {
    const { format, carrier } = this.#exchange;
    const { width } = shapeOf(part);
    const rows = messageBytes({ format, capacity, width }) * carrier.size;
    return rows <= 2 * part.length * bytesOf(format);
  }

  /** Adds the mean of the rows of all ranks. */
  async #addRowsOfAll(
    sums: Float32Array,
    own: RowsOfBatch,
    layout: RowsLayout,
    { weight = 1, label }: MeanOptions,
  ): Promise<void> {
    const { size } = this.#exchange.carrier;
    const message = await encodeRows(own, weight, layout);
    const messageOf = await this.#exchange.collect(message, `rows in ${label}`);
    const weights = Array.from({ length: size }, (_, rank) => weightIn(messageOf(rank)));
    const areEqual = weights.every((each) => each === weights[0]);
    const all = weights.reduce((a, b) => a + b, 0);
    for (const [rank, each] of weights.entries()) {
      // A rank without samples has no gradients, whatever its memory holds.
      if (each === 0) continue;
      const { rows, shift } = await decodeRows(messageOf(rank), layout);
      await addRows(sums, rows, (areEqual ? 1 / size : each / all) * 2 ** -shift);
    }
  }
}

/** Places and numbers of a row of the part of a gradient. */
const shapeOf = ({ length, rows }: HostPart): { readonly size: number; readonly width: number } => {
  const width = rows?.width ?? 1;
  return { size: length / width, width };
};

const wordsOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Uint32Array =>
  new Uint32Array(buffer, byteOffset, byteLength / 4);

const numbersOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Float32Array =>
  new Float32Array(buffer, byteOffset, byteLength / 4);

/** Decodes numbers and multiplies them. */
async function decode(
  codes: Uint8Array,
  format: WireFormat,
  values: Float32Array,
  factor: number,
): Promise<void> {
  const breath = new Breath();
  for (const { offset, count } of pieces(values.length)) {
    const piece = values.subarray(offset, offset + count);
    load(codes.subarray(offset * bytesOf(format)), format, piece);
    scale(piece, factor);
    await breath.after(count);
  }
}
