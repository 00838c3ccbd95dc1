import {
  checkCodeArray,
  checkNumberArray,
  checkRoom,
  type EncodeArrayOptions,
  encodeArrayOptions,
  type Numbers,
  type Source,
  separate,
  sourceOf,
  unaliased,
} from "./arrays/arguments.js";
import { numbersOfCodes } from "./arrays/elements.js";
import { type Encoder, encoderOf } from "./arrays/encoder.js";
import { decodeFew, encodeFew, roundFew } from "./arrays/few.js";
import {
  loadNumbers,
  pieceLength,
  roundPiece,
  storeCodes,
  storeNumbers,
  type Workspace,
  workspaceFor,
} from "./arrays/piece.js";
import { type RandomWords, randomWordsOf } from "./arrays/random-words.js";
import { mapNumbers, needsScalar } from "./arrays/scalar.js";
import { type CodeArray, checkFormat, type FloatFormat } from "./format.js";
import { requireKnown } from "./known-options.js";
import { checkSaturate } from "./rounding.js";

export type { EncodeArrayOptions, Numbers } from "./arrays/arguments.js";

/**
 * The codes of many numbers, each rounded once, in `out` or a new array.
 *
 * Float32Arrays are read as bits, which show the signs and payloads of NaNs. Signs are kept where the format's NaN has one, and
 * payloads as `nanPayload` of the format says. Other numbers are read as float64, and their NaNs become the positive quiet one.
 * Arrays may use shared memory. The array `out` may overlap `values`: the result is the same as with separate arrays.
 *
 * Stochastic rounding takes a `seed`: element i is rounded with word i % 4 of Philox4x32-10, with
 *
 * - counter [i >> 2, 0, low and high half of `offset`],
 * - key [low and high half of `seed`].
 *
 * @throws TypeError if `values` are not numbers, `format` has no codes, `out` is not of the format's kind, a buffer is detached,
 *   or options do not fit.
 * @throws RangeError if `out` is shorter than `values`, or a value is NaN and the format has none (see `encode`).
 */
export function encodeArray<C extends CodeArray>(
  values: Numbers,
  format: FloatFormat<C>,
  out?: C,
  options?: EncodeArrayOptions,
): C {
  const name = "encodeArray";
  checkFormat(name, format);
  if (options === undefined) {
    const few = encodeFew(values, format, out);
    if (few) return few;
  }
  const source = sourceOf(name, values);
  const { length } = source.values;
  if (out) {
    checkCodeArray(name, "out", out, format);
    checkRoom(name, length, out);
  }
  const codes = out ?? format.createCodes(length);
  if (options !== undefined) requireKnown(name, options, encodeArrayOptions);
  const conversion = conversionOf(name, source, format, out, options);
  const { workspace, encoder } = conversion;
  for (let at = 0; at < length; at += pieceLength) {
    const count = Math.min(pieceLength, length - at);
    conversion.fillRandom(at, count, workspace.random);
    if (conversion.isScalar) {
      mapNumbers(name, conversion.source, at, count, workspace, encoder, format.encode, codes);
    } else {
      loadNumbers(name, conversion.source, at, count, encoder.rounding, workspace);
      storeCodes(count, encoder, workspace, codes, at);
    }
  }
  return codes;
}

/**
 * The numbers of many codes, exactly, in `out` or a new array. NaNs of IEEE-like formats keep their sign and payload, others
 * become the quiet NaN. The array `out` may overlap `codes`.
 * @throws TypeError if `format` has no codes, `codes` are not of its kind, `out` is no Float32Array, or a buffer is detached.
 * @throws RangeError if `out` is shorter than `codes`, or an element is no code of the format.
 */
export function decodeArray(
  codes: CodeArray,
  format: FloatFormat,
  out?: Float32Array,
): Float32Array {
  const name = "decodeArray";
  checkFormat(name, format);
  const few = decodeFew(codes, format, out);
  if (few) return few;
  checkCodeArray(name, "codes", codes, format);
  const { length } = codes;
  if (out) {
    checkNumberArray(name, out, ["Float32Array"]);
    checkRoom(name, length, out);
  }
  const numbers = out ?? new Float32Array(length);
  const source = out && length > pieceLength ? unaliased(codes, out) : codes;
  return numbersOfCodes(source, format, numbers);
}

/**
 * Many numbers, each replaced by the format's number next to it, in `out` (which may be `values`) or a new Float32Array.
 * Reads, rounds and fails as `encodeArray` does.
 */
export function roundArray(
  values: Numbers,
  format: FloatFormat,
  out?: Float32Array,
  options?: EncodeArrayOptions,
): Float32Array;
export function roundArray(
  values: Numbers,
  format: FloatFormat,
  out: Float64Array,
  options?: EncodeArrayOptions,
): Float64Array;
export function roundArray(
  values: Numbers,
  format: FloatFormat,
  out?: Float32Array | Float64Array,
  options?: EncodeArrayOptions,
): Float32Array | Float64Array {
  const name = "roundArray";
  checkFormat(name, format);
  if (options === undefined) {
    const few = roundFew(values, format, out);
    if (few) return few;
  }
  const source = sourceOf(name, values);
  const { length } = source.values;
  if (out) {
    checkNumberArray(name, out, ["Float32Array", "Float64Array"]);
    checkRoom(name, length, out);
  }
  const rounded = out ?? new Float32Array(length);
  if (options !== undefined) requireKnown(name, options, encodeArrayOptions);
  const conversion = conversionOf(name, source, format, out, options);
  const { workspace, encoder } = conversion;
  for (let at = 0; at < length; at += pieceLength) {
    const count = Math.min(pieceLength, length - at);
    conversion.fillRandom(at, count, workspace.random);
    if (conversion.isScalar) {
      mapNumbers(name, conversion.source, at, count, workspace, encoder, format.round, rounded);
    } else {
      loadNumbers(name, conversion.source, at, count, encoder.rounding, workspace);
      roundPiece(count, encoder, workspace);
      storeNumbers(count, workspace, rounded, at);
    }
  }
  return rounded;
}

interface Conversion {
  readonly source: Source;
  readonly encoder: Encoder;
  readonly workspace: Workspace;
  readonly fillRandom: RandomWords;
  readonly isScalar: boolean;
}

function conversionOf(
  name: string,
  source: Source,
  format: FloatFormat,
  out: CodeArray | Float32Array | Float64Array | undefined,
  options: EncodeArrayOptions | undefined,
): Conversion {
  checkSaturate(options?.saturate);
  const isScalar = needsScalar(source, format);
  // A single piece is read as a whole before anything is written.
  const mayOverlap = out !== undefined && (isScalar || source.values.length > pieceLength);
  return {
    source: mayOverlap ? separate(source, out) : source,
    encoder: encoderOf(format, options?.rounding ?? "nearestEven", options?.saturate ?? false),
    workspace: workspaceFor(source.values.length),
    fillRandom: randomWordsOf(name, options),
    isScalar,
  };
}
