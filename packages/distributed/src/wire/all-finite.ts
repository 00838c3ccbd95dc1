import { areFinite } from "./arithmetic.js";
import { Breath } from "./breath.js";
import { pieces } from "./scatter-mean.js";

/** Whether no number is infinite or NaN. The event loop runs in between. */
export async function allFinite(numbers: Float32Array): Promise<boolean> {
  const breath = new Breath();
  for (const { offset, count } of pieces(numbers.length)) {
    if (!areFinite(numbers.subarray(offset, offset + count))) return false;
    await breath.after(count);
  }
  return true;
}
