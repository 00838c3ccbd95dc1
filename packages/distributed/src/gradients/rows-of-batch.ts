import { Breath } from "../wire/breath.js";
import { pieceLength } from "../wire/shift.js";

/** The gradients of an embedding's rows in a batch, each place once. */
export interface RowsOfBatch {
  /** In the order in which the batch names them. */
  readonly places: Uint32Array;
  /** [places, width] */
  readonly values: Float32Array;
}

/** The number of different places that indices name, of `size` places that exist. */
export function countPlaces(index: Uint32Array, size: number): number {
  const known = new Set<number>();
  for (const place of index) if (place < size) known.add(place);
  return known.size;
}

/**
 * Adds up rows of equal places, in the order of the batch.
 *
 * @param index [count]: the place of each row. Rows of places that do not exist are left out.
 * @param rows [count, width]
 * @param size Number of places.
 */
export async function rowsByPlace(
  index: Uint32Array,
  rows: Float32Array,
  { size, width }: { readonly size: number; readonly width: number },
): Promise<RowsOfBatch> {
  const numbers = new Map<number, number>();
  for (const place of index)
    if (place < size && !numbers.has(place)) numbers.set(place, numbers.size);
  const values = new Float32Array(numbers.size * width);
  const found = Uint32Array.from(index, (place) => numbers.get(place) ?? numbers.size);
  await addRows(values, { places: found, values: rows }, 1);
  return { places: Uint32Array.from(numbers.keys()), values };
}

/** Adds multiples of rows to their places in `sums` [size, width]. Those of places behind the last are left out. */
export async function addRows(
  sums: Float32Array,
  { places, values }: RowsOfBatch,
  factor: number,
): Promise<void> {
  const width = values.length / places.length;
  const atOnce = Math.max(1, Math.floor(pieceLength / width));
  const breath = new Breath();
  for (let first = 0; first < places.length; first += atOnce) {
    const some = places.subarray(first, first + atOnce);
    addSomeRows(sums, some, values.subarray(first * width), width, factor);
    await breath.after(some.length * width);
  }
}

/** {@link addRows} of a few, apart from what waits in between: engines compile that less well. */
function addSomeRows(
  sums: Float32Array,
  places: Uint32Array,
  values: Float32Array,
  width: number,
  factor: number,
): void {
  for (let row = 0; row < places.length; row++) {
    const [from, to] = [row * width, (places[row] as number) * width];
    if (to >= sums.length) continue;
    for (let i = 0; i < width; i++)
      sums[to + i] = (sums[to + i] as number) + (values[from + i] as number) * factor;
  }
}
