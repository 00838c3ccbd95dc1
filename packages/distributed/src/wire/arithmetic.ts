// Loops over many numbers, apart from the functions that wait in between: engines compile those less well.

/** Replaces numbers by multiples. */
export function scale(numbers: Float32Array, factor: number): void {
  for (let i = 0; i < numbers.length; i++) numbers[i] = (numbers[i] as number) * factor;
}

/** Writes multiples of numbers to `out`. */
export function scaleTo(out: Float32Array, numbers: Float32Array, factor: number): void {
  for (let i = 0; i < numbers.length; i++) out[i] = (numbers[i] as number) * factor;
}

/** Adds multiples of numbers to sums. */
export function addTo(sums: Float32Array, numbers: Float32Array, factor: number): void {
  for (let i = 0; i < numbers.length; i++)
    sums[i] = (sums[i] as number) + (numbers[i] as number) * factor;
}

/** Divides numbers. */
export function divide(numbers: Float32Array, divisor: number): void {
  for (let i = 0; i < numbers.length; i++) numbers[i] = (numbers[i] as number) / divisor;
}

/** The sum of squares and of what was summed before, in float64. */
export function squareSum(numbers: Float32Array, start = 0): number {
  let sum = start;
  for (let i = 0; i < numbers.length; i++) sum += (numbers[i] as number) ** 2;
  return sum;
}

/** The bits of the largest finite magnitude. */
export function largestMagnitude(words: Uint32Array): number {
  let largest = 0;
  for (let i = 0; i < words.length; i++) {
    const magnitude = (words[i] as number) & 0x7fffffff;
    if (magnitude > largest && magnitude < 0x7f800000) largest = magnitude;
  }
  return largest;
}

/** Whether no number is infinite or NaN: 0 times such a number is NaN, and so is every sum with it. */
export function areFinite(numbers: Float32Array): boolean {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += (numbers[i] as number) * 0;
  return sum === 0;
}

/** Writes the differences a − b to `out`. */
export function subtractTo(out: Float32Array, a: Float32Array, b: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = (a[i] as number) - (b[i] as number);
}

/** Writes `numbers / divisor + more` to `out`, with one rounding. */
export function divideAndAddTo(
  out: Float32Array,
  numbers: Float32Array,
  divisor: number,
  more: Float32Array,
): void {
  for (let i = 0; i < out.length; i++)
    out[i] = (numbers[i] as number) / divisor + (more[i] as number);
}
