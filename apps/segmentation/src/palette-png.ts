import { constants, inflateSync } from "node:zlib";
import { decode, encode } from "fast-png";

export type Colour = readonly [red: number, green: number, blue: number];

/** A PNG of palette indices. */
interface PalettePng {
  readonly height: number;
  readonly width: number;
  /** [height, width] */
  readonly indices: Uint8Array;
  readonly palette: readonly Colour[];
}

/**
 * The indices of a PNG with a palette; undefined for other bytes. Image libraries return the colours of such a file, and two indices may
 * have the same colour.
 * @throws Error where it is malformed, or has other data than its header says
 */
export function readPalettePng(bytes: Uint8Array): PalettePng | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isPng = bytes.length > 33 && view.getUint32(0) === 0x89504e47;
  if (!isPng || bytes[25] !== indexed) return undefined;
  const { width, height, depth, data, palette = [] } = decode(plainPng(bytes, view));
  const indices = new Uint8Array(width * height);
  const rowBytes = Math.ceil((width * depth) / 8);
  for (let y = 0, to = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const bit = x * depth;
      const byte = data[y * rowBytes + (bit >> 3)] as number;
      indices[to++] = (byte >> (8 - depth - (bit & 7))) & ((1 << depth) - 1);
    }
  const largest = indices.reduce((most, index) => Math.max(most, index), 0);
  if (largest >= palette.length)
    throw new Error(`it has index ${largest} of a palette of ${palette.length} colours`);
  return { height, width, indices, palette: palette.map(([r = 0, g = 0, b = 0]) => [r, g, b]) };
}

/** The file of a picture in indices. */
export const writePalettePng = ({ height, width, indices, palette }: PalettePng): Uint8Array =>
  encode({
    ...{ height, width, channels: 1, depth: 8, data: indices },
    palette: palette.map((colour) => [...colour]),
  });

/** The colour type in a header. */
const indexed = 3;

/**
 * The file without optional chunks, and with no more data than its header declares: decoders also inflate other chunks and longer data,
 * which may become gigabytes.
 */
function plainPng(bytes: Uint8Array, view: DataView): Uint8Array {
  const [width, height, depth] = [view.getUint32(16), view.getUint32(20), bytes[24] as number];
  const isInterlaced = bytes[28] === 1;
  const parts: Uint8Array[] = [bytes.subarray(0, 8)];
  const data: Uint8Array[] = [];
  for (let at = 8; at < bytes.length; ) {
    if (at + 12 > bytes.length) throw new Error("it ends inside a chunk");
    const length = view.getUint32(at);
    const end = at + 12 + length;
    if (end > bytes.length) throw new Error("it ends inside a chunk");
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (["IHDR", "PLTE", "IDAT", "IEND"].includes(type)) parts.push(bytes.subarray(at, end));
    if (type === "IDAT") data.push(bytes.subarray(at + 8, end - 4));
    at = type === "IEND" ? bytes.length : end;
  }
  const rows = height * (Math.ceil((width * depth) / 8) + 1);
  // Each of the seven passes of an interlaced image rounds its rows to bytes.
  const most = isInterlaced ? 2 * rows + 7 * (height + 1) : rows;
  const plain = inflateSync(Buffer.concat(data), {
    maxOutputLength: most,
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  if (plain.length < (isInterlaced ? 1 : rows)) throw new Error("its data is truncated");
  return Buffer.concat(parts);
}
