import { moduleDigits, pieceLength, regions } from "./module.js";

/** The module's kernels and views of the regions that they work on. Each takes a number of elements, at most `pieceLength`. */
export interface Kernels {
  readonly parameters: Uint32Array;
  readonly numbers: Float32Array;
  readonly numberWords: Uint32Array;
  readonly codes8: Uint8Array;
  readonly codes16: Uint16Array;
  readonly doubles: Float64Array;
  readonly random: Uint32Array;
  /** From `numbers` to `codes16`, rounded to nearest even as the parameters say. */
  encode16(count: number): void;
  encodeBfloat16(count: number): void;
  /** From `numbers` to `codes8`; 1 if there was a NaN. */
  encode8(count: number): number;
  /** The same for formats without −0. */
  encode8UnsignedZero(count: number): number;
  /** From codes to `numbers`. */
  decode16(count: number): void;
  decode8(count: number): void;
  decodeBfloat16(count: number): void;
  /** From `doubles` to `numbers`, rounded to odd. */
  narrowDoubles(count: number): void;
  /** Four words for each counter from `first` on, to `random`. */
  philox(
    count: number,
    first: number,
    counter2: number,
    counter3: number,
    key0: number,
    key1: number,
  ): void;
}

/** null where the engine has been asked and has no WebAssembly with SIMD for us. */
let instance: Kernels | null | undefined;

/** The kernels, compiled at first use, or undefined where they cannot be had. */
export function kernels(): Kernels | undefined {
  if (instance === undefined) instance = instantiate();
  return instance ?? undefined;
}

/**
 * What converts large arrays on this engine: `"webassembly"`, or `"javascript"` where there is no WebAssembly, no SIMD in it,
 * or a content security policy without `wasm-unsafe-eval`. The results are the same. The first call compiles the kernels.
 */
export function bulkBackend(): "webassembly" | "javascript" {
  return kernels() ? "webassembly" : "javascript";
}

function instantiate(): Kernels | null {
  try {
    const bytes = Uint8Array.from(moduleDigits.match(/../g) ?? [], (byte) =>
      Number.parseInt(byte, 16),
    );
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
    const { buffer } = exports.memory as WebAssembly.Memory;
    const made: Kernels = {
      ...(exports as unknown as Kernels),
      parameters: new Uint32Array(buffer, regions.parameters, 16),
      numbers: new Float32Array(buffer, regions.numbers, pieceLength),
      numberWords: new Uint32Array(buffer, regions.numbers, pieceLength),
      codes8: new Uint8Array(buffer, regions.codes, pieceLength),
      codes16: new Uint16Array(buffer, regions.codes, pieceLength),
      doubles: new Float64Array(buffer, regions.doubles, pieceLength),
      random: new Uint32Array(buffer, regions.words, pieceLength),
    };
    // Memory is little-endian everywhere, typed arrays are not: 1 as bfloat16 shows it.
    made.numbers[0] = 1;
    made.encodeBfloat16(1);
    return made.codes16[0] === 0x3f80 ? made : null;
  } catch {
    return null;
  }
}
