import { describe, expect, test } from "vitest";
import {
  type Named,
  readSafetensors,
  SafetensorsError,
  type SafetensorsProblem,
  type SafetensorsTensor,
  writeSafetensors,
  writeSafetensorsTo,
} from "./index.js";

const scalar = (value: number): SafetensorsTensor => ({
  dtype: "F32",
  shape: [],
  data: Float32Array.of(value),
});
const headerOf = (file: Uint8Array): string => {
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  return new TextDecoder().decode(file.subarray(8, 8 + length));
};

describe("writeSafetensors", () => {
  test("sorts by alignment and then by code points, with metadata first and spaces to a multiple of 8", () => {
    const one = { shape: [1] } as const;
    const file = writeSafetensors(
      {
        b: { ...one, dtype: "BOOL", data: new Uint8Array(1) },
        "\u{1f600}": { ...one, dtype: "U8", data: new Uint8Array(1) },
        "\uffee": { ...one, dtype: "U8", data: new Uint8Array(1) },
        z: { ...one, dtype: "U8", data: new Uint8Array(1) },
        "z.a": { ...one, dtype: "U8", data: new Uint8Array(1) },
        h: { ...one, dtype: "BF16", data: new Uint16Array(1) },
        f: { ...one, dtype: "F64", data: new Float64Array(1) },
        i: { ...one, dtype: "I64", data: new BigInt64Array(1) },
      },
      { metadata: { "\u{1f600}": "4", "\uffee": "3", b: "2", a: "1" } },
    );
    const header = headerOf(file);
    expect(header.length % 8 === 0 || new TextEncoder().encode(header).length % 8 === 0).toBe(true);
    expect(Object.keys(JSON.parse(header))).toEqual([
      "__metadata__",
      "i",
      "f",
      "h",
      "z",
      "z.a",
      "\uffee",
      "\u{1f600}",
      "b",
    ]);
    expect(Object.keys(JSON.parse(header).__metadata__)).toEqual(["a", "b", "\uffee", "\u{1f600}"]);
  });

  test("knows Node's buffers and views into larger ones", () => {
    const memory = Float32Array.of(1, 2, 3, 4);
    const { tensors } = readSafetensors(
      writeSafetensors({
        part: { dtype: "F32", shape: [2], data: memory.subarray(1, 3) },
        text: { dtype: "U8", shape: [2], data: Buffer.from("hi") },
      }),
    );
    expect(tensors.part?.data).toEqual(Float32Array.of(2, 3));
    expect(tensors.text?.data).toEqual(Uint8Array.of(104, 105));
  });

  const refused: readonly [string, SafetensorsProblem, () => unknown][] = [
    ["an empty name", "name", () => ({ "": scalar(1) })],
    ["the name of the metadata", "name", () => ({ __metadata__: scalar(1) })],
    ["half of a surrogate pair", "name", () => ({ "a\ud800": scalar(1) })],
    ["a name that is no string", "name", () => [[7, scalar(1)]]],
    [
      "a name twice",
      "duplicate",
      () => [
        ["a", scalar(1)],
        ["b", scalar(1)],
        ["a", scalar(2)],
      ],
    ],
    ["an unknown dtype", "dtype", () => ({ a: { ...scalar(1), dtype: "float32" } })],
    ["a dtype of Object.prototype", "dtype", () => ({ a: { ...scalar(1), dtype: "toString" } })],
    ["a negative dimension", "shape", () => ({ a: { ...scalar(1), shape: [-1] } })],
    ["a fraction", "shape", () => ({ a: { ...scalar(1), shape: [0.5] } })],
    ["NaN", "shape", () => ({ a: { ...scalar(1), shape: [Number.NaN] } })],
    ["a shape that is no array", "shape", () => ({ a: { ...scalar(1), shape: 1 } })],
    ["65 dimensions", "shape", () => ({ a: { ...scalar(1), shape: Array(65).fill(1) } })],
    ["an overflow", "shape", () => ({ a: { ...scalar(1), shape: [2 ** 30, 2 ** 30] } })],
    [
      "three elements of 4 bits",
      "shape",
      () => ({ a: { dtype: "F4", shape: [3], data: new Uint8Array(2) } }),
    ],
    ["too few elements", "data", () => ({ a: { ...scalar(1), shape: [2] } })],
    ["too many elements", "data", () => ({ a: { ...scalar(1), data: new Float32Array(2) } })],
    ["another kind of array", "data", () => ({ a: { ...scalar(1), data: Float64Array.of(1) } })],
    [
      "integers for codes",
      "data",
      () => ({ a: { dtype: "F16", shape: [1], data: Int16Array.of(1) } }),
    ],
    ["numbers without an array", "data", () => ({ a: { ...scalar(1), data: [1] } })],
    ["an ArrayBuffer", "data", () => ({ a: { ...scalar(1), data: new ArrayBuffer(4) } })],
    ["no data", "data", () => ({ a: { dtype: "F32", shape: [] } })],
    ["undefined for a tensor", "data", () => ({ a: undefined })],
    ["null for a tensor", "data", () => new Map([["a", null]])],
  ];
  test("refuses what a file cannot hold, and says of which tensor", () => {
    const found = refused.map(([name, , tensors]) => {
      try {
        writeSafetensors(tensors() as Named<SafetensorsTensor>);
      } catch (error) {
        if (!(error instanceof SafetensorsError)) throw error;
        return [
          name,
          error.problem,
          error.message.startsWith(`tensor ${JSON.stringify(error.tensor)}: `),
        ];
      }
      return [name, "was written", true];
    });
    expect(found).toEqual(refused.map(([name, problem]) => [name, problem, true]));
  });

  test("says what was expected of data", () => {
    expect(() =>
      writeSafetensors({ w: { dtype: "C64", shape: [2], data: new Float32Array(2) } }),
    ).toThrow('tensor "w": C64 [2] takes 4 elements of a Float32Array, not 2');
  });

  test("refuses metadata that is no text", () => {
    const write = (metadata: unknown) => () =>
      writeSafetensors({}, { metadata: metadata as Record<string, string> });
    expect(write({ step: 3 })).toThrow(
      'the value of "step" is no string: store it as JSON.stringify() of it',
    );
    for (const [metadata, fact] of [
      ["x", '"x"'],
      [["x"], "an array"],
      [null, "null"],
      [new Date(), "a Date"],
      [new ArrayBuffer(1), "an ArrayBuffer"],
    ] as const)
      expect(write(metadata)).toThrow(
        new SafetensorsError(
          "metadata",
          `the metadata is ${fact}: pass an object or a Map with text by key`,
        ),
      );
    expect(write(new Map([["step", 3]]))).toThrow('the value of "step" is no string');
    expect(write(new Map([[3, "step"]]))).toThrow("the key 3 of the metadata is no string");
    const twice = [
      ["a", "1"],
      ["b", "1"],
      ["a", "2"],
    ];
    expect(write(twice)).toThrow('the metadata has "a" twice: give it once');
    expect(write({ a: "\udc00" })).toThrow("half of a surrogate pair");
    expect(write({ "\udc00": "a" })).toThrow("half of a surrogate pair");
    expect(write({ a: "x".repeat(100_000_000) })).toThrow(
      /^the header takes 1000000\d\d bytes, the limit is 100000000/,
    );
  });

  test("takes metadata as a Map or pairs, as tensors", () => {
    for (const metadata of [new Map([["a", "b"]]), [["a", "b"] as const]])
      expect({ ...readSafetensors(writeSafetensors({}, { metadata })).metadata }).toEqual({
        a: "b",
      });
  });

  test("says what to pass in the place of what has no tensors by name", () => {
    for (const [tensors, fact] of [
      [undefined, "undefined"],
      [null, "null"],
      [5, "5"],
      ["abc", '"abc"'],
      [[scalar(1)], "an array"],
      [new Float32Array(1), "a Float32Array"],
    ] as const)
      expect(() => writeSafetensors(tensors as unknown as Named<SafetensorsTensor>)).toThrow(
        new TypeError(
          `the tensors are ${fact}: pass an object or a Map with { dtype, shape, data } by name`,
        ),
      );
    expect(() => writeSafetensors({ a: undefined } as never)).toThrow(
      'tensor "a": is undefined: pass { dtype, shape, data }',
    );
  });

  test("what fits no array is an error", () => {
    const huge = { byteLength: 2 ** 46, length: 2 ** 46 };
    expect(() =>
      writeSafetensors({ a: { dtype: "U8", shape: [2 ** 46], data: huge as Uint8Array } }),
    ).toThrow(SafetensorsError);
  });
});

describe("writeSafetensorsTo", () => {
  /** Takes at most `most` bytes at once. */
  function sinkOf(most = Number.POSITIVE_INFINITY) {
    const pieces: Uint8Array[] = [];
    return {
      pieces,
      write: async (bytes: Uint8Array) => {
        const piece = bytes.slice(0, most);
        pieces.push(piece);
        return { bytesWritten: piece.length };
      },
    };
  }
  const tensors = { a: scalar(1), b: scalar(2), c: scalar(3) };
  const whole = Buffer.from(writeSafetensors(tensors));

  test("writes the same bytes, a tensor at a time, also into a sink that takes little", async () => {
    for (const [most, pieces] of [
      [Number.POSITIVE_INFINITY, 4],
      [1, whole.length],
    ] as const) {
      const sink = sinkOf(most);
      expect(await writeSafetensorsTo(sink, tensors)).toBe(whole.length);
      expect(sink.pieces).toHaveLength(pieces);
      expect(Buffer.concat(sink.pieces)).toEqual(whole);
    }
  });

  test("asks for deferred data one after the other, when all before it is written", async () => {
    const sink = sinkOf();
    const asked: [string, number][] = [];
    const deferred = Object.fromEntries(
      [3, 1, 2].map((value) => {
        const name = "_abc".charAt(value);
        const data = async () => {
          asked.push([name, sink.pieces.length]);
          return Float32Array.of(value);
        };
        return [name, { dtype: "F32", shape: [], data } as const];
      }),
    );
    await writeSafetensorsTo(sink, deferred);
    expect(asked).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ]);
    expect(Buffer.concat(sink.pieces)).toEqual(whole);
  });

  test("writes nothing when what is at hand cannot be stored", async () => {
    const sink = sinkOf();
    const wrong = { ...tensors, d: { ...scalar(1), shape: [2] } };
    await expect(writeSafetensorsTo(sink, wrong as typeof tensors)).rejects.toMatchObject({
      problem: "data",
      tensor: "d",
    });
    expect(sink.pieces).toEqual([]);
  });

  test("wrong deferred data, a full disk and a sink that takes nothing end it", async () => {
    const wrong = { dtype: "F32", shape: [2], data: () => Float32Array.of(1) } as const;
    await expect(writeSafetensorsTo(sinkOf(), { wrong })).rejects.toMatchObject({
      tensor: "wrong",
    });
    const full = Object.assign(new Error("no space"), { code: "ENOSPC" });
    const failing = { write: () => Promise.reject(full) };
    await expect(writeSafetensorsTo(failing, tensors)).rejects.toBe(full);
    await expect(writeSafetensorsTo(sinkOf(0), tensors)).rejects.toThrow("the sink took 0 bytes");
    for (const result of [undefined, null, {}, { bytesWritten: 1e9 }]) {
      const sink = { write: async () => result as { bytesWritten: number } };
      await expect(writeSafetensorsTo(sink, tensors)).rejects.toThrow(
        `the sink took ${result?.bytesWritten} bytes of 168: its write() gives { bytesWritten }, at least 1`,
      );
    }
  });

  test("an unfinished file is refused wherever it ends", () => {
    const read = Array.from({ length: whole.length }, (_, length) => length).filter((length) => {
      try {
        readSafetensors(whole.subarray(0, length));
        return true;
      } catch {
        return false;
      }
    });
    expect(read).toEqual([]);
  });
});
