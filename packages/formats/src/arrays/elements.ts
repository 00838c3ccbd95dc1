/**
 * `encodeArray` and `decodeArray` for what memory holds: codes of formats narrower than float32, rounded to nearest even. Programs that only
 * store numbers bundle no other rounding.
 */
import type { CodeArray, FloatFormat } from "../format.js";
import { encodePiece } from "../wasm/pieces.js";
import { type Numbers, separate, sourceOf } from "./arguments.js";
import { encodeNearestEven, encoderOf } from "./encoder.js";
import { loadCodes, loadNumbers, part, pieceLength, storeNumbers, workspaceFor } from "./piece.js";

/** Writes the codes of `values` to `out`, which is as long and may overlap them. */
export function storeCodesOf<C extends CodeArray>(
  values: Numbers,
  format: FloatFormat,
  saturate: boolean,
  out: C,
): C {
  const given = sourceOf("encodeElements", values);
  const { length } = given.values;
  // A single piece is read as a whole before anything is written.
  const source = length > pieceLength ? separate(given, out) : given;
  const encoder = encoderOf(format, "nearestEven", saturate);
  const workspace = workspaceFor(length);
  const { kernels, words } = workspace;
  for (let at = 0; at < length; at += pieceLength) {
    const count = Math.min(pieceLength, length - at);
    loadNumbers("encodeElements", source, at, count, "nearestEven", workspace);
    const encoded = kernels && encodePiece(kernels, count, encoder);
    if (encoded) out.set(part(encoded, 0, count), at);
    else encodeNearestEven(words, count, encoder, out, at);
  }
  return out;
}

/** Writes the numbers of `codes` to `out`, which is as long and shares no memory with them. */
export function numbersOfCodes<A extends Float32Array>(
  codes: CodeArray,
  format: FloatFormat,
  out: A,
): A {
  const { length } = codes;
  const workspace = workspaceFor(length);
  for (let at = 0; at < length; at += pieceLength) {
    const count = Math.min(pieceLength, length - at);
    loadCodes(codes, at, count, format, workspace);
    storeNumbers(count, workspace, out, at);
  }
  return out;
}
