import { Breath } from "../wire/breath.js";
import { pieces } from "../wire/scatter-mean.js";
import { largestExponent, shiftFor } from "../wire/shift.js";
import { scaledSource } from "../wire/source.js";
import { bytesOf, load, type WireFormat } from "../wire/wire.js";
import type { RowsOfBatch } from "./rows-of-batch.js";

/** The shape of the messages of all ranks. */
export interface RowsLayout {
  readonly format: WireFormat;
  /** Rows for which each message has room. */
  readonly capacity: number;
  readonly width: number;
}

/** What a rank has sent. Its rows are multiplied by `2^shift`. */
export interface SentRows {
  readonly weight: number;
  readonly shift: number;
  readonly rows: RowsOfBatch;
}

/** The shift, the number of rows and the weight of the sender. */
const headerBytes = 16;

/** Bytes of a message: whole multiples of 16, so that every message begins at one. */
export const messageBytes = ({ format, capacity, width }: RowsLayout): number =>
  Math.ceil((headerBytes + capacity * (4 + width * bytesOf(format))) / 16) * 16;

/** A message with rows, which in 16 bits are multiplied by a power of two of their own. */
export async function encodeRows(
  { places, values }: RowsOfBatch,
  weight: number,
  layout: RowsLayout,
): Promise<Uint8Array> {
  const { format, capacity } = layout;
  const breath = new Breath();
  const shift = format === "float32" ? 0 : shiftFor(await largestExponent(values, breath));
  const message = new Uint8Array(messageBytes(layout));
  const header = new DataView(message.buffer);
  header.setInt32(0, shift);
  header.setUint32(4, places.length);
  header.setFloat64(8, weight);
  new Uint32Array(message.buffer, headerBytes).set(places);
  const body = message.subarray(headerBytes + capacity * 4);
  const source = scaledSource(values, shift, 2 ** shift);
  for (const { offset, count } of pieces(values.length)) {
    source.write(offset, count, format, body.subarray(offset * bytesOf(format)));
    await breath.after(count);
  }
  return message;
}

/** The weight in a message. */
export const weightIn = (message: Uint8Array): number => headerOf(message).getFloat64(8);

/** The rows in a message. */
export async function decodeRows(
  message: Uint8Array,
  { format, capacity, width }: RowsLayout,
): Promise<SentRows> {
  const header = headerOf(message);
  const places = new Uint32Array(
    message.buffer,
    message.byteOffset + headerBytes,
    header.getUint32(4),
  );
  const values = new Float32Array(places.length * width);
  const body = message.subarray(headerBytes + capacity * 4);
  const breath = new Breath();
  for (const { offset, count } of pieces(values.length)) {
    const piece = values.subarray(offset, offset + count);
    load(body.subarray(offset * bytesOf(format)), format, piece);
    await breath.after(count);
  }
  const [weight, shift] = [weightIn(message), header.getInt32(0)];
  return { weight, shift, rows: { places, values } };
}

const headerOf = ({ buffer, byteOffset }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, headerBytes);
