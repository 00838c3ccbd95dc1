/** Numbers between −scale and scale that are the same in every process: a linear congruential generator (Numerical Recipes). */
export function randomNumbers(count: number, scale = 1, seed = 1234): Float32Array<ArrayBuffer> {
  const values = new Float32Array(count);
  let state = seed >>> 0;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = (state / 2 ** 31 - 1) * scale;
  }
  return values;
}

/** Classes 0 to `classes` − 1 in turns. */
export const cyclicLabels = (count: number, classes: number): Uint32Array<ArrayBuffer> =>
  Uint32Array.from({ length: count }, (_, i) => i % classes);

/** The same labels as rows of zeros with a one. */
export function oneHotRows(labels: ArrayLike<number>, classes: number): Float32Array<ArrayBuffer> {
  const rows = new Float32Array(labels.length * classes);
  for (let i = 0; i < labels.length; i++) rows[i * classes + (labels[i] as number)] = 1;
  return rows;
}

/** A [rows, columns] matrix as [columns, rows]. */
export function transposed(
  matrix: ArrayLike<number>,
  rows: number,
  columns: number,
): Float32Array<ArrayBuffer> {
  const out = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) out[j * rows + i] = matrix[i * columns + j] as number;
  return out;
}

/** [batch, pixels, channels] as [batch, channels, pixels]. */
export function channelsFirst(
  images: Float32Array,
  batch: number,
  pixels: number,
  channels: number,
): Float32Array<ArrayBuffer> {
  const out = new Float32Array(images.length);
  const size = pixels * channels;
  for (let n = 0; n < batch; n++)
    out.set(transposed(images.subarray(n * size, (n + 1) * size), pixels, channels), n * size);
  return out;
}

/** A convolution's weight [taps, in, out] as [out, in, taps]. */
export function filtersFirst(
  weight: Float32Array,
  taps: number,
  inChannels: number,
  outChannels: number,
): Float32Array<ArrayBuffer> {
  const out = new Float32Array(weight.length);
  for (let tap = 0; tap < taps; tap++)
    for (let i = 0; i < inChannels; i++)
      for (let o = 0; o < outChannels; o++)
        out[(o * inChannels + i) * taps + tap] = weight[
          (tap * inChannels + i) * outChannels + o
        ] as number;
  return out;
}
