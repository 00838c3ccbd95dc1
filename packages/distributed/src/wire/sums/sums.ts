import { addTo, divide, scale } from "../arithmetic.js";
import { moduleDigits, pieceLength, regions } from "./module.js";

/** Memory for one piece of a mean, and the arithmetic on it. Its content is valid until the caller lets others run. */
export interface PieceSums {
  readonly sums: Float32Array;
  /** What is added next. */
  readonly numbers: Float32Array;
  /** Adds multiples of the first numbers to the sums, each with one rounding. */
  add(count: number, factor: number): void;
  /** Divides the first sums. */
  divide(count: number, divisor: number): void;
}

/** The exports of the module. */
interface Kernels {
  readonly memory: WebAssembly.Memory;
  add(count: number, factor: number): void;
  scale(count: number, factor: number): void;
  divide(count: number, divisor: number): void;
}

let made: PieceSums | undefined;

/** In WebAssembly where the engine has it, else in JavaScript, with the same bits. */
export function pieceSums(): PieceSums {
  made ??= inWebAssembly() ?? inJavaScript();
  return made;
}

/** Undefined where the engine has no WebAssembly with SIMD for us. */
export function inWebAssembly(): PieceSums | undefined {
  try {
    const digits = moduleDigits.match(/../g) ?? [];
    const bytes = Uint8Array.from(digits, (byte) => Number.parseInt(byte, 16));
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
    const kernels = exports as unknown as Kernels;
    const { buffer } = kernels.memory;
    const sums = new Float32Array(buffer, regions.sums, pieceLength);
    const numbers = new Float32Array(buffer, regions.numbers, pieceLength);
    // Memory is little-endian everywhere, typed arrays are not.
    numbers[0] = 1;
    kernels.add(1, 1);
    if (sums[0] !== 1) return undefined;
    return {
      ...{ sums, numbers, add: kernels.add },
      divide(count, divisor) {
        if (isPowerOfTwo(divisor)) kernels.scale(count, 1 / divisor);
        else kernels.divide(count, divisor);
      },
    };
  } catch {
    return undefined;
  }
}

export function inJavaScript(): PieceSums {
  const sums = new Float32Array(pieceLength);
  const numbers = new Float32Array(pieceLength);
  return {
    ...{ sums, numbers },
    add: (count, factor) => addTo(sums.subarray(0, count), numbers.subarray(0, count), factor),
    divide(count, divisor) {
      const some = sums.subarray(0, count);
      if (isPowerOfTwo(divisor)) scale(some, 1 / divisor);
      else divide(some, divisor);
    },
  };
}

/** Multiplication by the reciprocal is faster, and exact then. */
const isPowerOfTwo = (x: number): boolean => 2 ** Math.round(Math.log2(x)) === x;
