import { scaleTo } from "./arithmetic.js";
import { load, store, type WireFormat } from "./wire.js";

/** Numbers to send: times 2^shift, in any format. */
export interface Source {
  readonly length: number;
  readonly shift: number;
  /** Writes some of them in a format to the start of `bytes`. */
  write(offset: number, count: number, format: WireFormat, bytes: Uint8Array): void;
}

/** Numbers that are multiplied by `factor`, which contains 2^shift, when they are sent. */
export function scaledSource(values: Float32Array, shift: number, factor: number): Source {
  let scaled = new Float32Array();
  return {
    length: values.length,
    shift,
    write(offset, count, format, bytes) {
      const piece = values.subarray(offset, offset + count);
      if (factor === 1) return store(piece, format, bytes);
      if (scaled.length < count) scaled = new Float32Array(count);
      const multiples = scaled.subarray(0, count);
      scaleTo(multiples, piece, factor);
      store(multiples, format, bytes);
    },
  };
}

/** Numbers that are stored as codes already. */
export function codesSource(
  codes: Uint16Array,
  shift: number,
  stored: Exclude<WireFormat, "float32">,
): Source {
  const all = new Uint8Array(codes.buffer, codes.byteOffset, codes.byteLength);
  return {
    length: codes.length,
    shift,
    write(offset, count, format, bytes) {
      const piece = all.subarray(offset * 2, (offset + count) * 2);
      if (format === stored) return bytes.set(piece);
      const numbers = new Float32Array(count);
      load(piece, stored, numbers);
      store(numbers, format, bytes);
    },
  };
}

/** A range of what a source sends. */
export const partOf = (source: Source, from: number, length: number): Source => ({
  ...{ length, shift: source.shift },
  write: (offset, count, format, bytes) => source.write(from + offset, count, format, bytes),
});
