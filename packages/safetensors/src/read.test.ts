import { expect, test } from "vitest";
import { everyDtype } from "../test/every-dtype.js";
import { dtypeNames, readSafetensors, SafetensorsError, writeSafetensors } from "./index.js";

test("every dtype comes back in its own kind of array", () => {
  const { tensors } = readSafetensors(writeSafetensors(everyDtype()));
  expect({ ...tensors }).toEqual(everyDtype());
  const kinds = Object.entries(tensors).map(([name, { data }]) => [
    dtypeNames[name as keyof typeof dtypeNames],
    data.constructor.name,
    data.length,
  ]);
  expect(Object.fromEntries(kinds.map(([name, ...rest]) => [name, rest.join(" ")]))).toEqual({
    bool: "Uint8Array 8",
    float4e2m1fn: "Uint8Array 4",
    float6e2m3fn: "Uint8Array 6",
    float6e3m2fn: "Uint8Array 6",
    uint8: "Uint8Array 8",
    int8: "Int8Array 8",
    float8e5m2: "Uint8Array 8",
    float8e4m3fn: "Uint8Array 8",
    float8e8m0fnu: "Uint8Array 8",
    float8e4m3fnuz: "Uint8Array 8",
    float8e5m2fnuz: "Uint8Array 8",
    int16: "Int16Array 8",
    uint16: "Uint16Array 8",
    float16: "Uint16Array 8",
    bfloat16: "Uint16Array 8",
    int32: "Int32Array 8",
    uint32: "Uint32Array 8",
    float32: "Float32Array 8",
    complex64: "Float32Array 16",
    float64: "Float64Array 8",
    int64: "BigInt64Array 8",
    uint64: "BigUint64Array 8",
  });
});

test("data is a view where it is aligned, and a copy where it is not", () => {
  const bytes = writeSafetensors(everyDtype());
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  const views = (file: Uint8Array): string[] =>
    Object.entries(readSafetensors(file).tensors)
      .filter(([, { data }]) => data.buffer === file.buffer)
      .map(([name]) => name);
  expect(views(bytes)).toHaveLength(22);
  expect(views(shifted.subarray(1)).sort()).toEqual(
    Object.keys(everyDtype())
      .filter((name) => /^(BOOL|U8|I8|F8|F6_|F4)/.test(name))
      .sort(),
  );
  expect({ ...readSafetensors(shifted.subarray(1)).tensors }).toEqual(everyDtype());
});

test("takes a buffer, a view of a part, Node's Buffer and shared memory", () => {
  const bytes = writeSafetensors({ é: { dtype: "I8", shape: [1], data: Int8Array.of(-1) } });
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  const framed = Buffer.concat([Buffer.from("abc"), bytes, Buffer.from("def")]);
  for (const source of [
    bytes,
    bytes.buffer,
    shared,
    new Uint8Array(shared),
    Buffer.from(bytes),
    framed.subarray(3, -3),
  ])
    expect(readSafetensors(source).tensors.é?.data[0]).toBe(-1);
});

test("says what to pass in the place of what are no bytes", () => {
  for (const [bytes, fact] of [
    ["model.safetensors", "string"],
    [undefined, "undefined"],
    [null, "null"],
    [[], "object"],
    [{}, "object"],
    [new Float32Array(4), "Float32Array"],
  ] as const)
    expect(() => readSafetensors(bytes as unknown as ArrayBuffer)).toThrow(
      new TypeError(
        `readSafetensors: bytes is ${fact}: pass an ArrayBuffer or a Uint8Array; openSafetensors() opens paths`,
      ),
    );
});

test("names of Object.prototype are only names", () => {
  const scalar = { dtype: "U8", shape: [], data: Uint8Array.of(1) } as const;
  const written = [
    ["__proto__", scalar],
    ["constructor", scalar],
    ["hasOwnProperty", scalar],
  ] as const;
  const metadata = JSON.parse('{"__proto__":"x","toString":"y"}');
  const file = readSafetensors(writeSafetensors(written, { metadata }));
  expect(Object.keys(file.tensors).sort()).toEqual(["__proto__", "constructor", "hasOwnProperty"]);
  expect(Object.values(file.tensors)).toEqual([scalar, scalar, scalar]);
  expect(Object.entries(file.metadata)).toEqual([
    ["__proto__", "x"],
    ["toString", "y"],
  ]);
  expect(readSafetensors(writeSafetensors({})).tensors.constructor).toBeUndefined();
  expect(({} as Record<string, unknown>).dtype).toBeUndefined();
});

test("the limit of the header can be lowered, and NaN lets nothing pass", () => {
  const bytes = writeSafetensors({});
  expect(() => readSafetensors(bytes, { maxHeaderBytes: 8 })).not.toThrow();
  expect(() => readSafetensors(bytes, { maxHeaderBytes: 7 })).toThrow(
    "the header has 8 bytes, the limit is 7",
  );
  expect(() => readSafetensors(bytes, { maxHeaderBytes: Number.NaN })).toThrow(SafetensorsError);
  for (const wrong of ["10", 10n, {}])
    expect(() => readSafetensors(bytes, { maxHeaderBytes: wrong as number })).toThrow(
      new TypeError("maxHeaderBytes: pass a number"),
    );
});

test("an error is one across copies of the package, and quotes no more than a line of a file", () => {
  const foreign = Object.defineProperty(new Error(), Symbol.for("@halfstep/SafetensorsError"), {});
  expect(foreign).toBeInstanceOf(SafetensorsError);
  expect(new Error()).not.toBeInstanceOf(SafetensorsError);
  expect(null).not.toBeInstanceOf(SafetensorsError);
  const error = new SafetensorsError("size", "is wrong", {
    source: "m.safetensors",
    tensor: `\n${"x".repeat(1000)}`,
    offset: 9,
  });
  expect(error.message).toBe(
    `m.safetensors: tensor "\\n${"x".repeat(79)}…": is wrong (at byte 9): download the file again, or save it again`,
  );
  expect(error).toMatchObject({ name: "SafetensorsError", problem: "size", offset: 9 });
});

test("a negative dimension is said in a sentence", () => {
  const header = new TextEncoder().encode(
    '{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}',
  );
  const bytes = new Uint8Array(8 + header.length + 4);
  bytes[0] = header.length;
  bytes.set(header, 8);
  expect(() => readSafetensors(bytes)).toThrow(
    "expected a dimension, an integer of at least 0, found - (at byte 37)",
  );
});
