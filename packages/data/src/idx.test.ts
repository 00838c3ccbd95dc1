import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DataError } from "./error.js";
import { readIdx } from "./idx.js";

const file = (typeCode: number, shape: readonly number[], data: readonly number[]): Uint8Array => {
  const header = new DataView(new ArrayBuffer(4 + 4 * shape.length));
  header.setUint8(2, typeCode);
  header.setUint8(3, shape.length);
  for (const [axis, size] of shape.entries()) header.setUint32(4 + 4 * axis, size);
  return new Uint8Array([...new Uint8Array(header.buffer), ...data]);
};

describe("readIdx", () => {
  it.each([
    ["uint8", 8, [255, 1], new Uint8Array([255, 1])],
    ["int8", 9, [255, 1], new Int8Array([-1, 1])],
    ["int16", 11, [0xff, 0xfe, 1, 0], new Int16Array([-2, 256])],
    ["int32", 12, [0xff, 0xff, 0xff, 0xfd, 0, 0, 1, 0], new Int32Array([-3, 256])],
    ["float32", 13, [0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0], new Float32Array([1, -2.5])],
    [
      "float64",
      14,
      [0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 4, 0, 0, 0, 0, 0, 0],
      new Float64Array([1, -2.5]),
    ],
  ])("reads big-endian %s", (dtype, typeCode, bytes, data) => {
    expect(readIdx(file(typeCode, [2, 1], bytes))).toEqual({ dtype, shape: [2, 1], data });
  });

  it("reads from the middle of a larger buffer", () => {
    const bytes = file(9, [3], [1, 2, 3]);
    const larger = new Uint8Array(bytes.length + 7);
    larger.set(bytes, 5);
    const { data } = readIdx(larger.subarray(5, 5 + bytes.length));
    expect([...data]).toEqual([1, 2, 3]);
  });

  it("reads an array without elements", () => {
    expect(readIdx(file(8, [0, 28, 28], []))).toEqual({
      dtype: "uint8",
      shape: [0, 28, 28],
      data: new Uint8Array(0),
    });
  });

  it.each([
    ["an empty file", new Uint8Array(0), "t: 0 bytes are too few for an IDX file"],
    ["gzip", new Uint8Array([0x1f, 0x8b, 8, 0]), "t: is gzip-compressed: decompress it first"],
    [
      "a PNG",
      new Uint8Array([0x89, 0x50, 0x4e, 0x47]),
      "t: is not an IDX file: it starts with 89 50 4e 47 where 00 00 is expected",
    ],
    ["an unknown type", file(10, [1], [0]), "t: element type 0x0a does not exist in IDX"],
    ["no dimensions", file(8, [], [1]), "t: has no dimensions"],
    [
      "half a header",
      file(8, [2, 2], []).subarray(0, 9),
      "t: ends inside its header: 9 bytes of 12",
    ],
    [
      "too few bytes",
      file(8, [2, 2], [1, 2, 3]),
      "t: is truncated: shape [2,2] of uint8 takes 16 bytes, found 15",
    ],
    [
      "too many bytes",
      file(11, [1], [0, 1, 2]),
      "t: has bytes after its data: shape [1] of int16 takes 10 bytes, found 11",
    ],
    [
      "dimensions beyond any memory",
      file(14, [0xffffffff, 0xffffffff, 0xffffffff], [1]),
      /^t: is truncated/,
    ],
  ])("refuses %s", (_, bytes, message) => {
    expect(() => readIdx(bytes, "t")).toThrow(message);
    expect(() => readIdx(bytes, "t")).toThrow(DataError);
  });

  it("returns or throws a DataError whatever the bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.boolean(), (bytes, plausible) => {
        if (plausible) bytes.set([0, 0, 8, 1].slice(0, bytes.length));
        try {
          const { shape, data } = readIdx(bytes);
          return data.length === shape.reduce((product, size) => product * size, 1);
        } catch (error) {
          return error instanceof DataError;
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("the bytes of readIdx", () => {
  it("may be an ArrayBuffer", () => {
    const { buffer } = new Uint8Array([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]);
    expect(readIdx(buffer)).toEqual({ dtype: "uint8", shape: [2], data: Uint8Array.of(7, 9) });
  });

  it.each([
    [undefined, "undefined"],
    ["train-images", '"train-images"'],
    [[0, 0, 8, 1], "an array"],
  ])("are not %j", (bytes, fact) => {
    expect(() => readIdx(bytes as unknown as Uint8Array)).toThrow(
      new TypeError(
        `readIdx: bytes is ${fact}: pass a Uint8Array or an ArrayBuffer with the file's content`,
      ),
    );
  });
});
