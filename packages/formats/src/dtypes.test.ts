import { describe, expect, test } from "vitest";
import { decodeArray, encodeArray, roundArray } from "./arrays.js";
import { decodeAs, encodeAs, floatRecord, storeAs } from "./dtypes/record.js";
import {
  allDTypes,
  bytesFor,
  type DType,
  decodeElements,
  dtypes,
  elementsIn,
  encodeElements,
  floatingDTypes,
  isFloat8,
  isFloating,
  isHalf,
  isInteger,
  isNarrow,
  roundElements,
  storeElements,
  toInteger,
} from "./dtypes.js";
import { float4e2m1fn } from "./float4e2m1fn.js";
import { float6e3m2fn } from "./float6e3m2fn.js";
import { formatOf } from "./format-of.js";

const lengths = [0, 1, 2, 3, 4, 5, 64, 65];

/** What every dtype holds exactly, with both ends of small ranges. */
const whole = (length: number): number[] => Array.from({ length }, (_, i) => i % 9);

const bytesOf = (view: ArrayBufferView): number[] => [
  ...new Uint8Array(view.buffer, view.byteOffset, view.byteLength),
];

describe.each(allDTypes)("%s", (dtype) => {
  test.each(lengths)("%s elements survive bytes and back", (length) => {
    const values = whole(length);
    const bytes = encodeElements(values, dtype);
    expect(bytes.byteLength).toBe(bytesFor(dtype, length));
    expect(elementsIn(dtype, bytes.byteLength)).toBe(length);
    expect([...decodeElements(bytes.buffer, dtype, length)]).toEqual(values);
  });

  test.each(lengths)("%s elements are stored among others", (length) => {
    const offset = 8;
    const memory = new Uint8Array(offset + bytesFor(dtype, length) + 8).fill(0xa5);
    storeElements(whole(length), dtype, memory.buffer, offset);
    const end = offset + bytesFor(dtype, length);
    expect([...memory.subarray(offset, end)]).toEqual(
      bytesOf(encodeElements(whole(length), dtype)),
    );
    expect([...memory.subarray(0, offset), ...memory.subarray(end)]).toEqual(Array(16).fill(0xa5));
    expect([...decodeElements(memory.buffer, dtype, length, offset)]).toEqual(whole(length));
  });

  test.each([8, 5])("bytes from byte %s of a view are memory, too", (start) => {
    const memory = new Uint8Array(64).fill(0xa5);
    const bytes = memory.subarray(start, start + 40);
    const stored = bytesOf(encodeElements(whole(5), dtype));
    storeElements(whole(5), dtype, bytes, 4);
    expect([...bytes.subarray(4, 4 + stored.length)]).toEqual(stored);
    expect(memory.filter((byte, i) => byte !== 0xa5 && (i < start + 4 || i >= start + 24))).toEqual(
      new Uint8Array(0),
    );
    const view = new DataView(memory.buffer, start, 40);
    expect([...decodeElements(bytes, dtype, 5, 4)]).toEqual(whole(5));
    expect([...decodeElements(view, dtype, 5, 4)]).toEqual(whole(5));
    const beyond = 41 - stored.length;
    expect(() => decodeElements(bytes, dtype, 5, beyond)).toThrow(RangeError);
    expect(() => decodeElements(bytes, dtype, 5, -1)).toThrow(RangeError);
    expect(() => storeElements(whole(5), dtype, bytes, beyond)).toThrow(
      new RangeError(
        `storeElements: ${stored.length} bytes from byte ${beyond} on do not lie in 40 bytes of memory`,
      ),
    );
  });

  test.each([[[1, 2]], [8], [undefined], ["text"]])("memory is not %j", (memory) => {
    const wrong = memory as unknown as ArrayBuffer;
    expect(() => decodeElements(wrong, dtype, 1)).toThrow(TypeError);
    expect(() => storeElements([1], dtype, wrong)).toThrow(
      /^storeElements: memory is a (Array|Number|Undefined|String); pass an ArrayBuffer/,
    );
  });

  test("is of one kind", () => {
    const { kind, bits } = dtypes[dtype];
    expect([isFloating(dtype), isInteger(dtype)]).toEqual([kind === "float", kind !== "float"]);
    expect([isNarrow(dtype), isHalf(dtype), isFloat8(dtype)]).toEqual([
      bits < 32,
      bits === 16,
      bits === 8,
    ]);
  });

  test("decodes to the host array that it names", () => {
    const { Elements, bits } = dtypes[dtype];
    const bytes = encodeElements([1, 2], dtype);
    const decoded = decodeElements(bytes.buffer, dtype, 2);
    expect(decoded).toBeInstanceOf(Elements);
    expect(decoded.buffer === bytes.buffer).toBe(bits === 32);
    expect(encodeElements(new Elements([1, 2]), dtype) instanceof Elements).toBe(bits === 32);
  });
});

describe.each(floatingDTypes)("%s", (dtype) => {
  const { format, saturates } = dtypes[dtype];
  const stored = (x: number): number =>
    decodeElements(encodeElements([x], dtype).buffer, dtype, 1)[0] as number;

  test("is a format of the same name", () => {
    expect(formatOf(dtype as "float16")).toBe(format);
  });

  test("rounds to nearest even, and keeps zeros and NaN", () => {
    const epsilon = 2 ** -format.mantissaBits;
    expect(stored(1 + epsilon / 2)).toBe(1);
    expect(stored(1 + (3 * epsilon) / 2)).toBe(1 + 2 * epsilon);
    expect([stored(-0), stored(Number.NaN)]).toEqual([-0, Number.NaN]);
  });

  test("saturates or overflows", () => {
    const { max } = format.finfo;
    expect([stored(max * 2), stored(-Infinity)]).toEqual(
      saturates
        ? [max, -max]
        : [dtype === "float32" ? max * 2 : Infinity, -Infinity].map(Math.fround),
    );
  });
});

describe.each(["int32", "uint32"] as const)("%s", (dtype) => {
  const [low, high] = dtypes[dtype].range;
  const given = [1.9, -1.9, 2 ** 40, -(2 ** 40), Number.NaN, Infinity, -Infinity, high, low];
  const want = [1, Math.max(low, -1), high, low, 0, high, low, high, low];

  test("drops fractions and saturates, into new arrays and into memory", () => {
    expect(given.map((x) => toInteger(dtype, x))).toEqual(want);
    expect([...encodeElements(given, dtype)]).toEqual(want);
    const buffer = new ArrayBuffer(bytesFor(dtype, given.length));
    storeElements(Float64Array.from(given), dtype, buffer);
    expect([...decodeElements(buffer, dtype, given.length)]).toEqual(want);
  });

  test("converts arrays of the other kind", () => {
    expect([...encodeElements(Int32Array.of(-1), "uint32")]).toEqual([0]);
    expect([...encodeElements(Uint32Array.of(2 ** 32 - 1), "int32")]).toEqual([2 ** 31 - 1]);
  });
});

// No tensor is stored in fewer than 8 bits yet: their records hold all the same.
describe.each([float4e2m1fn, float6e3m2fn])("a record of $name", (format) => {
  const record = floatRecord(format);

  test.each(lengths)("packs %s elements densely", (length) => {
    const values = Array.from({ length }, (_, i) => [0, 0.5, 1, -2, 6][i % 5] as number);
    const bytes = encodeAs(record, values);
    expect(bytes.byteLength).toBe(Math.ceil((length * format.bits) / 8));
    expect([...decodeAs(record, bytes.buffer, length, 0)]).toEqual(values);
    const memory = new Uint8Array(bytes.byteLength + 2).fill(0xa5);
    storeAs(record, values, memory.buffer, 1);
    expect([...memory]).toEqual([0xa5, ...bytesOf(bytes), 0xa5]);
  });

  test("saturates", () => {
    const { max } = format.finfo;
    expect([...decodeAs(record, encodeAs(record, [1e9, -1e9]).buffer, 2, 0)]).toEqual([max, -max]);
  });
});

test("names that are no dtype are refused", () => {
  const name = "float17" as DType;
  const values = new Float32Array(2);
  const message = 'unknown dtype "float17": use float32, float16, bfloat16';
  expect(() => encodeElements(values, name)).toThrow(message);
  expect(() => decodeElements(values, name, 2)).toThrow(message);
  expect(() => storeElements(values, name, new Uint8Array(8))).toThrow(message);
  expect(() => bytesFor(name, 2)).toThrow(message);
  expect(() => elementsIn("constructor" as DType, 2)).toThrow(TypeError);
});

test("all dtypes are those of the table, floats first", () => {
  const names: readonly DType[] = [
    ...["float32", "float16", "bfloat16", "float8e4m3fn", "float8e5m2"],
    ...["int32", "uint32"],
  ] as DType[];
  expect(allDTypes).toEqual(names);
  expect(floatingDTypes).toEqual(names.slice(0, 5));
});

/** Bits of float32 of all magnitudes, of both signs, with subnormal numbers and NaNs of many payloads: for loops, and for WebAssembly in pieces. */
const spread = (length: number): Float32Array => {
  const words = Uint32Array.from({ length }, (_, i) => Math.imul(i, 0x9e3779b1));
  words.set([
    0x7f800000, 0xff800000, 0x7f800001, 0xffc12345, 0x80000000, 1, 0x477fefff, 0x477ff000,
  ]);
  return new Float32Array(words.buffer);
};

describe.each(floatingDTypes.filter(isNarrow))("%s", (dtype) => {
  const { format, saturates } = dtypes[dtype];
  test.each([40, 10_000])(
    "%s elements are what the bulk conversions of its format give",
    (length) => {
      const values = spread(length);
      const options = saturates ? { saturate: true } : undefined;
      const codes = encodeArray(values, format, undefined, options);
      const bytes = encodeElements(values, dtype);
      expect(bytesOf(bytes)).toEqual(bytesOf(codes));
      const decoded = decodeElements(bytes.buffer, dtype, length);
      expect(bytesOf(decoded)).toEqual(bytesOf(decodeArray(codes, format)));
      const doubles = Float64Array.from(values, (x, i) => x * (1 + i * 2 ** -40));
      expect(bytesOf(encodeElements(doubles, dtype))).toEqual(
        bytesOf(encodeArray(doubles, format, undefined, options)),
      );
      roundElements(values, dtype);
      expect(bytesOf(values)).toEqual(
        bytesOf(roundArray(spread(length), format, undefined, options)),
      );
    },
  );

  test("its elements are stored over the memory that they come from", () => {
    const values = spread(10_000);
    const expected = bytesOf(encodeElements(values, dtype));
    storeElements(values.subarray(0), dtype, values.buffer as ArrayBuffer);
    expect(bytesOf(new Uint8Array(values.buffer, 0, expected.length))).toEqual(expected);
  });
});
