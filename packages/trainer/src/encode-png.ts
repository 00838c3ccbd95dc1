import { crc32, deflateSync } from "node:zlib";

/** Pixels, row by row. */
export interface PngPixels {
  readonly width: number;
  readonly height: number;
  /** 1: grey; 3: red, green, blue. */
  readonly channels: 1 | 3;
  /** [height, width, channels], from 0 to 255 */
  readonly pixels: Uint8Array;
}

/**
 * Encodes a small image for a report as PNG; rows are not filtered.
 * @throws RangeError where the number of pixels does not match the sides
 */
export function encodePng({ width, height, channels, pixels }: PngPixels): Uint8Array {
  const row = width * channels;
  if (pixels.length !== row * height)
    throw new RangeError(
      `${width}×${height} pixels of ${channels} channels are ${row * height} bytes, not ${pixels.length}`,
    );
  const rows = new Uint8Array((row + 1) * height);
  for (let y = 0; y < height; y++)
    rows.set(pixels.subarray(y * row, (y + 1) * row), y * (row + 1) + 1);
  const head = new DataView(new ArrayBuffer(13));
  head.setUint32(0, width);
  head.setUint32(4, height);
  head.setUint8(8, 8);
  head.setUint8(9, channels === 1 ? 0 : 2);
  return Buffer.concat([
    Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a),
    chunk("IHDR", new Uint8Array(head.buffer)),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", new Uint8Array()),
  ]);
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
