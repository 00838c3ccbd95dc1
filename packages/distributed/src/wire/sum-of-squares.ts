import { squareSum } from "./arithmetic.js";
import { Breath } from "./breath.js";
import { pieces } from "./scatter-mean.js";

/** The sum of squares, in float64 and in order. The event loop runs in between. */
export async function sumOfSquares(numbers: Float32Array): Promise<number> {
  const breath = new Breath();
  let sum = 0;
  for (const { offset, count } of pieces(numbers.length)) {
    sum = squareSum(numbers.subarray(offset, offset + count), sum);
    await breath.after(count);
  }
  return sum;
}
