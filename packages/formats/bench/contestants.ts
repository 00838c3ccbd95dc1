/**
 * The contestants of each conversion. Each returns its result, which must equal that of this package before anything is
 * timed.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import * as petamoriken from "@petamoriken/float16";
import { decodeWords } from "../src/arrays/decoder.js";
import { encoderOf, encodeWords, roundWords } from "../src/arrays/encoder.js";
import {
  bfloat16,
  type CodeArray,
  decodeArray,
  encodeArray,
  type FloatFormat,
  float8e4m3fn,
  float8e5m2,
  float16,
  roundArray,
} from "../src/index.js";
import { peersFolder } from "./peers.js";

export interface Contestant {
  readonly name: string;
  /** False for the engine's own classes and functions, and for this package. */
  readonly isPeer: boolean;
  readonly run: () => ArrayLike<number>;
}

export interface Task {
  readonly name: string;
  /** Bytes that one element reads and writes. */
  readonly bytes: number;
  /** The contestants, this package first. */
  readonly contestants: readonly Contestant[];
}

type Scalar = (value: number) => number;
interface EngineArray extends ArrayLike<number> {
  set(values: ArrayLike<number>): void;
  readonly buffer: ArrayBuffer;
}
const engine = globalThis as { Float16Array?: new (length: number) => EngineArray };
const engineRound = (Math as { f16round?: Scalar }).f16round;

/** One after the other, so that only one task's arrays are alive. */
export function* tasksFor(values: Float32Array): Generator<Task> {
  yield encoding(values, float16, [...peerEncoders(values), ...engineEncoders(values)]);
  yield decoding(values, float16, [...peerDecoders(values), ...engineDecoders(values)]);
  yield rounding(values);
  for (const format of [bfloat16, float8e4m3fn, float8e5m2]) {
    yield encoding(values, format as FloatFormat, []);
    yield decoding(values, format as FloatFormat, []);
  }
}

/** DataView's polyfills take a second for a million elements: larger arrays would show nothing new. */
const isTimely = (values: Float32Array): boolean => values.length <= 2 ** 20;

const ours = (run: () => ArrayLike<number>): Contestant => ({
  name: "@halfstep/formats",
  isPeer: false,
  run,
});
const withoutWebAssembly = (run: () => ArrayLike<number>): Contestant => ({
  name: "@halfstep/formats without WebAssembly",
  isPeer: false,
  run,
});

function encoding(values: Float32Array, format: FloatFormat, others: Contestant[]): Task {
  const codes = format.createCodes(values.length);
  const plain = format.createCodes(values.length);
  const words = new Uint32Array(values.buffer);
  const encoder = encoderOf(format, "nearestEven", false);
  return {
    name: `float32 → ${format.name}`,
    bytes: 4 + codes.BYTES_PER_ELEMENT,
    contestants: [
      ours(() => encodeArray(values, format, codes)),
      withoutWebAssembly(() => {
        encodeWords(words, words.length, encoder, plain, 0, words);
        return plain;
      }),
      ...others,
    ],
  };
}

function decoding(values: Float32Array, format: FloatFormat, others: Contestant[]): Task {
  const codes: CodeArray = encodeArray(values, format);
  const decoded = new Float32Array(values.length);
  const plain = new Float32Array(values.length);
  const words = new Uint32Array(plain.buffer);
  return {
    name: `${format.name} → float32`,
    bytes: 4 + codes.BYTES_PER_ELEMENT,
    contestants: [
      ours(() => decodeArray(codes, format, decoded)),
      withoutWebAssembly(() => {
        decodeWords(codes, 0, codes.length, format, words);
        return plain;
      }),
      ...others,
    ],
  };
}

function rounding(values: Float32Array): Task {
  const { length } = values;
  const rounded = new Float32Array(length);
  const plain = new Float32Array(length);
  const words = new Uint32Array(plain.buffer);
  const scratch = new Uint32Array(length);
  const encoder = encoderOf(float16, "nearestEven", false);
  const loop = (name: string, isPeer: boolean, round: Scalar): Contestant => {
    const out = new Float32Array(length);
    // A function of its own for each, so that the engine can inline what it calls.
    const each = new Function(
      "values",
      "out",
      "round",
      "for (let i = 0; i < values.length; i++) out[i] = round(values[i]); return out;",
    ) as (values: Float32Array, out: Float32Array, round: Scalar) => Float32Array;
    return { name, isPeer, run: () => each(values, out, round) };
  };
  const requirePeer = createRequire(join(peersFolder, "package.json"));
  const stdlib = (from: string): Contestant => {
    const name = `@stdlib/number-${from}-base-to-float16`;
    return loop(name, true, requirePeer(name) as Scalar);
  };
  return {
    name: "float32 rounded to float16",
    bytes: 8,
    contestants: [
      ours(() => roundArray(values, float16, rounded)),
      withoutWebAssembly(() => {
        plain.set(values);
        roundWords(words, length, encoder, words, scratch);
        return plain;
      }),
      loop("@petamoriken/float16 f16round", true, petamoriken.f16round),
      stdlib("float32"),
      stdlib("float64"),
      ...(engineRound ? [loop("Math.f16round", false, engineRound)] : []),
    ],
  };
}

function peerEncoders(values: Float32Array): Contestant[] {
  const { length } = values;
  const view = new DataView(new ArrayBuffer(2 * length));
  const codes = new Uint16Array(view.buffer);
  const setEach = (): Uint16Array => {
    for (let i = 0; i < length; i++) {
      petamoriken.setFloat16(view, 2 * i, values[i] as number, true);
    }
    return codes;
  };
  return [
    {
      name: "@petamoriken/float16 new Float16Array",
      isPeer: true,
      run: () => new Uint16Array(new petamoriken.Float16Array(values).buffer),
    },
    ...(isTimely(values)
      ? [{ name: "@petamoriken/float16 setFloat16", isPeer: true, run: setEach }]
      : []),
  ];
}

function peerDecoders(values: Float32Array): Contestant[] {
  const { length } = values;
  const half = new petamoriken.Float16Array(values);
  const view = new DataView(half.buffer);
  const decoded = new Float32Array(length);
  const getEach = (): Float32Array => {
    for (let i = 0; i < length; i++) decoded[i] = petamoriken.getFloat16(view, 2 * i, true);
    return decoded;
  };
  return [
    {
      name: "@petamoriken/float16 new Float32Array",
      isPeer: true,
      run: () => new Float32Array(half as unknown as ArrayLike<number>),
    },
    ...(isTimely(values)
      ? [{ name: "@petamoriken/float16 getFloat16", isPeer: true, run: getEach }]
      : []),
  ];
}

function engineEncoders(values: Float32Array): Contestant[] {
  if (!engine.Float16Array) return [];
  const half = new engine.Float16Array(values.length);
  const codes = new Uint16Array(half.buffer);
  const run = (): Uint16Array => {
    half.set(values);
    return codes;
  };
  return [{ name: "Float16Array.set", isPeer: false, run }];
}

function engineDecoders(values: Float32Array): Contestant[] {
  if (!engine.Float16Array) return [];
  const half = new engine.Float16Array(values.length);
  half.set(values);
  const decoded = new Float32Array(values.length);
  const run = (): Float32Array => {
    decoded.set(half);
    return decoded;
  };
  return [{ name: "Float32Array.set(Float16Array)", isPeer: false, run }];
}
