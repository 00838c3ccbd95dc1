import fc from "fast-check";
import { expect, test } from "vitest";
import { dtypes, type SafetensorsDtype } from "../src/dtype.js";
import {
  readSafetensors,
  type Safetensors,
  SafetensorsError,
  type SafetensorsTensor,
  writeSafetensors,
} from "../src/index.js";
import { corpus, file } from "./corpus.js";

const text = fc.string({ unit: "binary", maxLength: 12 });
const name = fc.oneof(
  text.filter((candidate) => candidate !== "" && candidate !== "__metadata__"),
  fc.constantFrom("__proto__", "constructor", "toString", "0", "fc.weight"),
);
const tensor = fc
  .record({
    dtype: fc.constantFrom(...(Object.keys(dtypes) as SafetensorsDtype[])),
    shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }),
    seed: fc.nat(250),
  })
  .map(({ dtype, shape, seed }): SafetensorsTensor => {
    const { bits, array } = dtypes[dtype];
    // Whole bytes for the dtypes of 4 and 6 bits.
    const whole = bits < 8 ? [...shape, 4] : shape;
    const bytes = whole.reduce((product, size) => product * size, bits) / 8;
    const { buffer } = Uint8Array.from({ length: bytes }, (_, i) => (seed * 13 + i * 7) % 251);
    const data = new array(buffer, 0, bytes / array.BYTES_PER_ELEMENT);
    return { dtype, shape: whole, data } as SafetensorsTensor;
  });
const named = fc.uniqueArray(fc.tuple(name, tensor), { selector: ([key]) => key, maxLength: 6 });
const metadata = fc.dictionary(text, text, { maxKeys: 4 });

/** The content, or the typed error; any other goes on. */
function read(bytes: Uint8Array): Safetensors | SafetensorsError {
  try {
    return readSafetensors(bytes);
  } catch (error) {
    if (error instanceof SafetensorsError) return error;
    throw error;
  }
}

/** Tensors with their bytes, since NaN payloads count. */
const exact = (tensors: Iterable<readonly [string, SafetensorsTensor]>): unknown =>
  [...tensors]
    .map(([key, { dtype, shape, data }]) => {
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
      return { key, dtype, shape, kind: data.constructor.name, bytes };
    })
    .sort((a, b) => (a.key < b.key ? -1 : 1));

test("what is written is read, whatever the order it was given in and wherever it lies in memory", () => {
  fc.assert(
    fc.property(named, metadata, fc.nat(9), (tensors, about, shift) => {
      const bytes = writeSafetensors(tensors, { metadata: about });
      expect(writeSafetensors(tensors.toReversed(), { metadata: about })).toEqual(bytes);
      expect(writeSafetensors(new Map(tensors), { metadata: about })).toEqual(bytes);

      const memory = new Uint8Array(bytes.length + shift);
      memory.set(bytes, shift);
      const content = readSafetensors(memory.subarray(shift));
      expect(exact(Object.entries(content.tensors))).toEqual(exact(tensors));
      expect(Object.entries(content.metadata).sort()).toEqual(Object.entries(about).sort());

      // Written files are aligned, so all data of one at the start of a buffer is views of it.
      const views = Object.values(readSafetensors(bytes).tensors);
      expect(views.filter(({ data }) => data.buffer !== bytes.buffer)).toEqual([]);
    }),
    { numRuns: 150 },
  );
});

test("random bytes are refused with the typed error", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, isHeader) => {
      expect(read(isHeader ? file(bytes, 0) : bytes)).toBeInstanceOf(SafetensorsError);
    }),
    { numRuns: 1000 },
  );
});

const tokens = [
  ..."{}[]:,",
  '"a"',
  '"b\\u0061"',
  '"__metadata__"',
  '"dtype":"U8"',
  '"shape":[2]',
  '"data_offsets":[0,2]',
  '"data_offsets":[2,4]',
  '"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}',
  '"c":{"data_offsets":[2,4],"shape":[2],"dtype":"I8"}',
  '"c":"d"',
  "0",
  "2",
  "-1",
  "null",
  " ",
  "\n",
];

test("a header of random tokens is refused, or is what JSON.parse reads", () => {
  let readable = 0;
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...tokens), { maxLength: 8 }),
      fc.constantFrom(0, 2, 4),
      (parts, data) => {
        const json = `{${parts.join("")}}`;
        const content = read(file(json, data));
        if (content instanceof SafetensorsError) return;
        readable += 1;
        const { __metadata__ = {}, ...tensors } = JSON.parse(json);
        expect({ ...content.metadata }).toEqual(__metadata__);
        expect(Object.keys(content.tensors).sort()).toEqual(Object.keys(tensors).sort());
        for (const [key, { dtype, shape }] of Object.entries(content.tensors))
          expect({ dtype, shape }).toEqual({
            dtype: tensors[key].dtype,
            shape: tensors[key].shape,
          });
      },
    ),
    {
      numRuns: 3000,
      examples: [
        [['"__metadata__"', ":", "{", '"c":"d"', "}"], 0],
        [['"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}', " "], 2],
      ],
    },
  );
  expect(readable).toBeGreaterThan(10);
});

test("strings are what JSON.parse makes of them, however they are escaped", () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.integer({ min: 0, max: 0xffff }).map((code) => `\\u${code.toString(16).padStart(4, "0")}`),
    fc.constantFrom("\\ud83d\\ude00", "\\uD800\\uDC00", '\\"', "\\\\", "\\/", "\\b\\f\\n\\r\\t"),
  );
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 8 }), (units) => {
      const json = `"${units.join("")}"`;
      const content = read(file(`{"__metadata__":{"key":${json}}}`, 0));
      let parsed: string | undefined;
      try {
        parsed = JSON.parse(json);
      } catch {
        parsed = undefined;
      }
      // JSON.parse lets halves of surrogate pairs pass.
      if (parsed === undefined || /\p{Surrogate}/u.test(parsed))
        expect(content).toBeInstanceOf(SafetensorsError);
      else expect(content).toHaveProperty("metadata.key", parsed);
    }),
    { numRuns: 1500 },
  );
});

test("pieces of files put together are refused with the typed error or read", () => {
  const whole = corpus.filter(({ bytes }) => bytes.length < 1000).map(({ bytes }) => bytes);
  const piece = fc
    .tuple(fc.constantFrom(...whole), fc.nat(400), fc.nat(400))
    .map(([bytes, a, b]) => bytes.subarray(Math.min(a, b), Math.max(a, b)));
  fc.assert(
    fc.property(fc.constantFrom(...whole), piece, fc.nat(400), (bytes, insert, at) => {
      read(Uint8Array.from([...bytes.subarray(0, at), ...insert, ...bytes.subarray(at)]));
      const header = [...bytes.subarray(8, 8 + at), ...insert, ...bytes.subarray(8 + at)];
      read(file(Uint8Array.from(header), 8));
    }),
    { numRuns: 1000 },
  );
});
