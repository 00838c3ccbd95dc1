import type { CodeArray, FloatFormat, Rounding } from "../format.js";
import { type Kernels, kernels } from "../wasm/kernels.js";
import { pieceLength } from "../wasm/module.js";
import { decodePiece, encodePiece, roundedPiece } from "../wasm/pieces.js";
import type { Source } from "./arguments.js";
import { checkCodes, decodeWords } from "./decoder.js";
import { type Encoder, encodeWords, roundWords } from "./encoder.js";
import { narrowNumbers } from "./narrow.js";

/**
 * Arrays are converted piece by piece through memory that stays in the cache: numbers of any kind become float32, float32
 * become codes, codes become float32.
 */
export interface Workspace {
  readonly kernels: Kernels | undefined;
  /** One piece of float32, and the same as bits. */
  readonly numbers: Float32Array;
  readonly words: Uint32Array;
  /** One piece of random words. */
  readonly random: Uint32Array;
  /** Room for one piece of codes of any format. */
  readonly codes: Uint32Array;
}

/** Elements in a piece; a multiple of 4. */
export { pieceLength };

/** Length from which calls of WebAssembly and the copies pay. */
const wasmFrom = 256;

let plain: Workspace | undefined;
let native: Workspace | undefined;

/** The workspace for a conversion of that many elements. */
export function workspaceFor(length: number): Workspace {
  const found = length >= wasmFrom ? kernels() : undefined;
  if (!plain) {
    const numbers = new Float32Array(pieceLength);
    const words = new Uint32Array(numbers.buffer);
    const random = new Uint32Array(pieceLength);
    plain = { kernels: undefined, numbers, words, random, codes: new Uint32Array(pieceLength) };
  }
  if (!found) return plain;
  native ??= { ...plain, kernels: found, numbers: found.numbers, words: found.numberWords };
  return native;
}

/** Reads a piece of numbers as float32; wider ones as `narrowNumbers` has it. */
export function loadNumbers(
  operation: string,
  source: Source,
  from: number,
  count: number,
  rounding: Rounding,
  workspace: Workspace,
): void {
  const { kernels, numbers, words } = workspace;
  const isStochastic = rounding === "stochastic";
  switch (source.kind) {
    case "float32":
      numbers.set(part(source.values, from, count));
      return;
    case "codes":
      loadCodes(source.values, from, count, source.format, workspace);
      return;
    case "float64":
      if (kernels && !isStochastic) {
        kernels.doubles.set(part(source.values, from, count));
        kernels.narrowDoubles(count);
        return;
      }
      narrowNumbers(operation, source.values, from, count, numbers, words, isStochastic);
      return;
    case "numbers":
      narrowNumbers(operation, source.values, from, count, numbers, words, isStochastic);
  }
}

/** Encodes the piece of numbers into `out` from `at` on. */
export function storeCodes(
  count: number,
  encoder: Encoder,
  workspace: Workspace,
  out: CodeArray,
  at: number,
): void {
  const { kernels, words, random } = workspace;
  const encoded = kernels && encodePiece(kernels, count, encoder);
  if (encoded) out.set(part(encoded, 0, count), at);
  else encodeWords(words, count, encoder, out, at, random);
}

/** Decodes codes into the piece of numbers. */
export function loadCodes(
  codes: CodeArray,
  from: number,
  count: number,
  format: FloatFormat,
  workspace: Workspace,
): void {
  const { kernels, words } = workspace;
  if (!kernels || !decodePiece(kernels, part(codes, from, count), format))
    decodeWords(codes, from, count, format, words);
  checkCodes(codes, from, count, format);
}

/** Replaces the piece of numbers by the format's numbers next to them. */
export function roundPiece(count: number, encoder: Encoder, workspace: Workspace): void {
  const { kernels, words, random, codes } = workspace;
  if (kernels && roundedPiece(kernels, count, encoder)) return;
  roundWords(words, count, encoder, random, codes);
}

/** Writes the piece of numbers to `out` from `at` on, all bits of NaNs included. */
export function storeNumbers(
  count: number,
  { numbers }: Workspace,
  out: Float32Array | Float64Array,
  at: number,
): void {
  out.set(part(numbers, 0, count), at);
}

/** `array` itself where that is all of it: a view costs more than converting a few numbers. */
export function part<T extends CodeArray | Float32Array | Float64Array>(
  array: T,
  from: number,
  count: number,
): T {
  return from === 0 && count === array.length ? array : (array.subarray(from, from + count) as T);
}
