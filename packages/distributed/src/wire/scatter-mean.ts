import type { Carrier } from "../carrier.js";
import { otherContents } from "../errors.js";
import type { Breath } from "./breath.js";
import type { MemoryPool, NumberPool } from "./pool.js";
import { pieceLength } from "./shift.js";
import type { Source } from "./source.js";
import { pieceSums } from "./sums/sums.js";
import { bytesOf, type Level, load, type WireFormat } from "./wire.js";

/** The circumstances of an exchange. */
export interface Exchanging {
  readonly carrier: Carrier;
  readonly pool: MemoryPool;
  readonly numberPool: NumberPool;
  readonly breath: Breath;
  readonly label: string | undefined;
  /** Elements: chunks begin at multiples of it. */
  readonly unit?: number | undefined;
  /** One word, whose bits travel with the chunks: all ranks get those that any of them has set. */
  readonly flags?: Int32Array | undefined;
  /** Tells what is averaged: it has to be the same on all ranks. Default 0. */
  readonly contents?: number | undefined;
}

/** How a bucket is divided: each member averages a chunk of it, or all members average all of it. */
export type Division = "chunks" | "whole";

/** The part of a bucket that one rank averages. */
export interface OwnPart {
  /** The mean over the ranks so far, times 2^shift; from the pool. */
  readonly numbers: Float32Array;
  /** The least shift of all ranks that have a weight, which therefore all know. */
  readonly shift: number;
  /** The sum of the weights of these ranks. */
  readonly weight: number;
}

/** Elements of a chunk: equal for all members, with starts at multiples of `unit`: by default 16 bytes in every format. */
export const chunkLength = (length: number, members: number, unit = 8): number =>
  Math.ceil(length / members / unit) * unit;

/** Each chunk begins with the shift, the flags, the contents and the weight of its sender. */
const headerBytes = 16;

/** Sends members their parts of the bucket, and computes the weighted mean of the parts that arrive, in float32. */
export const scatterMean = async (
  exchanging: Exchanging,
  level: Level,
  contribution: Contribution,
): Promise<OwnPart> => (await scatter(exchanging, level, contribution))();

/** What a rank gives to a mean. */
export interface Contribution {
  readonly source: Source;
  readonly weight: number;
  /** Default "chunks". */
  readonly division?: Division;
}

/** Sends members their parts of the bucket, and returns what waits for theirs and computes the mean. The collective has begun then. */
export async function scatter(
  exchanging: Exchanging,
  { scope, format }: Level,
  { source, weight, division = "chunks" }: Contribution,
): Promise<() => Promise<OwnPart>> {
  const { carrier, pool, breath, label, unit, flags } = exchanging;
  const contents = (exchanging.contents ?? 0) ^ source.length;
  const members = carrier.members(scope);
  const chunks = division === "whole" ? 1 : members.length;
  const chunk = chunkLength(source.length, chunks, unit);
  const stride = headerBytes + chunk * bytesOf(format);
  const lengthOf = (i: number): number => Math.max(0, Math.min(chunk, source.length - i * chunk));
  const send = pool.take(stride * chunks);
  for (let i = 0; i < chunks; i++) {
    const start = i * stride;
    const header = new DataView(send.buffer, send.byteOffset + start, headerBytes);
    header.setInt16(0, source.shift);
    // Memory of the pool has other bytes here.
    header.setUint16(2, flags?.[0] ?? 0);
    header.setInt32(4, contents);
    header.setFloat64(8, weight);
    for (const { offset, count } of pieces(lengthOf(i))) {
      const place = start + headerBytes + offset * bytesOf(format);
      source.write(i * chunk + offset, count, format, send.subarray(place));
      await breath.after(count);
    }
  }
  const receive = pool.take(stride * members.length);
  const arrived =
    division === "whole"
      ? carrier.allGather(send, receive, { scope, label })
      : carrier.allToAll(send, receive, { scope, label });
  // The caller may have failed meanwhile.
  arrived.catch(() => {});
  return async () => {
    await arrived;
    breath.begin();
    const parts = Array.from(members.keys(), (member) => {
      const start = member * stride;
      const header = new DataView(receive.buffer, receive.byteOffset + start, headerBytes);
      if (header.getInt32(4) !== contents) throw otherContents(carrier, label);
      if (flags) flags[0] = (flags[0] as number) | header.getUint16(2);
      return {
        shift: header.getInt16(0),
        weight: header.getFloat64(8),
        bytes: receive.subarray(start + headerBytes, start + stride),
      };
    });
    const own = division === "whole" ? 0 : members.indexOf(carrier.rank);
    const mean = await meanOf(exchanging, parts, format, lengthOf(own));
    pool.give(send);
    pool.give(receive);
    return mean;
  };
}

interface ReceivedPart {
  readonly shift: number;
  readonly weight: number;
  readonly bytes: Uint8Array;
}

async function meanOf(
  { numberPool, breath }: Exchanging,
  parts: readonly ReceivedPart[],
  format: WireFormat,
  length: number,
): Promise<OwnPart> {
  // A rank without samples has no gradients, whatever its memory holds.
  const counted = parts.filter((part) => part.weight !== 0);
  const shift = Math.min(...(counted.length > 0 ? counted : parts).map((part) => part.shift));
  const weight = parts.reduce((sum, part) => sum + part.weight, 0);
  const numbers = numberPool.take(length);
  // Equal weights make a plain sum: its bits do not depend on how many samples a rank has.
  const areEqual = parts.every((part) => part.weight === parts[0]?.weight);
  const divisor = areEqual ? parts.length : weight;
  const piece = pieceSums();
  for (let offset = 0; offset < length; offset += piece.sums.length) {
    const count = Math.min(piece.sums.length, length - offset);
    const sums = piece.sums.subarray(0, count).fill(0);
    for (const part of counted) {
      const bytes = part.bytes.subarray(offset * bytesOf(format));
      load(bytes, format, piece.numbers.subarray(0, count));
      piece.add(count, (areEqual ? 1 : part.weight) * 2 ** (shift - part.shift));
    }
    piece.divide(count, divisor);
    numbers.set(sums, offset);
    await breath.after(count);
  }
  return { numbers, shift, weight };
}

/** The pieces of a range between which the event loop may run. */
export function* pieces(
  length: number,
): Generator<{ readonly offset: number; readonly count: number }> {
  for (let offset = 0; offset < length; offset += pieceLength)
    yield { offset, count: Math.min(pieceLength, length - offset) };
}
