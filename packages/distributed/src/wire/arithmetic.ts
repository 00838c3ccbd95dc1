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

/** The sum of squares, in float64. */
export function squareSum(numbers: Float32Array): number {
  let sum = 0;
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
