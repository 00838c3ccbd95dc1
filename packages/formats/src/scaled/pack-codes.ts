import { checkFormat, type FloatFormat } from "../format.js";

/**
 * Codes of a format of fewer than 8 bits, dense in bytes: element i has the bits from i · format.bits on, counted from the
 * lowest bit of the first byte. So two 4-bit codes share a byte, the first in the low half (as in torch's
 * `float4_e2m1fn_x2` and in ONNX), and four 6-bit codes fill three bytes. Unused bits of the last byte are 0.
 * @returns ⌈codes.length · format.bits / 8⌉ bytes.
 * @throws TypeError if `format` has no codes.
 * @throws RangeError if a code has more bits than the format.
 */
export function packCodes(codes: Uint8Array, format: FloatFormat<Uint8Array>): Uint8Array {
  checkFormat("packCodes", format);
  const { bits } = format;
  const bytes = new Uint8Array(packedLength(codes.length, bits));
  const end = 2 ** bits;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] as number;
    if (code >= end) {
      throw new RangeError(
        `packCodes: ${code} at ${i} is no ${format.name} code: pass integers from 0 to ${end - 1}`,
      );
    }
    const at = i * bits;
    const byte = Math.floor(at / 8);
    const shifted = code << (at % 8);
    bytes[byte] = (bytes[byte] as number) | shifted;
    if (shifted > 0xff) bytes[byte + 1] = shifted >> 8;
  }
  return bytes;
}

/**
 * The `length` codes that `packCodes` made dense, one a byte.
 * @throws RangeError if `bytes` is not exactly as long as `length` codes need.
 */
export function unpackCodes(
  bytes: Uint8Array,
  format: FloatFormat<Uint8Array>,
  length: number,
): Uint8Array {
  checkFormat("unpackCodes", format);
  const { bits } = format;
  if (!(Number.isSafeInteger(length) && length >= 0)) {
    throw new RangeError(`unpackCodes: length ${String(length)} is not a count of codes`);
  }
  if (bytes.length !== packedLength(length, bits)) {
    throw new RangeError(
      `unpackCodes: ${length} codes of ${format.name} fill ${packedLength(length, bits)} bytes, not ${bytes.length}`,
    );
  }
  const codes = new Uint8Array(length);
  const mask = 2 ** bits - 1;
  for (let i = 0; i < length; i++) {
    const at = i * bits;
    const byte = Math.floor(at / 8);
    const pair = (bytes[byte] as number) | ((bytes[byte + 1] ?? 0) << 8);
    codes[i] = (pair >> (at % 8)) & mask;
  }
  return codes;
}

const packedLength = (length: number, bits: number): number => Math.ceil((length * bits) / 8);
