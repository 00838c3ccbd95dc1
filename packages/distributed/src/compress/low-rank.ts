// Products of a matrix with a few columns, row by row in float64. All ranks compute equal bits from equal numbers.

/** A matrix in the order of its rows. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/** matrix · columns: `rows × rank` numbers. */
export function times({ rows, columns, values }: Matrix, right: Float32Array): Float32Array {
  const rank = right.length / columns;
  const out = new Float32Array(rows * rank);
  const sums = new Float64Array(rank);
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column] as number;
      for (let k = 0; k < rank; k++)
        sums[k] = (sums[k] as number) + value * (right[column * rank + k] as number);
    }
    out.set(sums, row * rank);
  }
  return out;
}

/** transpose(matrix) · columns: `columns × rank` numbers. */
export function transposedTimes(
  { rows, columns, values }: Matrix,
  right: Float32Array,
): Float32Array {
  const rank = right.length / rows;
  const sums = new Float64Array(columns * rank);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column] as number;
      for (let k = 0; k < rank; k++) {
        const at = column * rank + k;
        sums[at] = (sums[at] as number) + value * (right[row * rank + k] as number);
      }
    }
  return Float32Array.from(sums);
}

/** left · transpose(right), for `rows × rank` and `columns × rank` numbers. */
export function outer(left: Float32Array, right: Float32Array, rank: number): Float32Array {
  const [rows, columns] = [left.length / rank, right.length / rank];
  const out = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let sum = 0;
      for (let k = 0; k < rank; k++)
        sum += (left[row * rank + k] as number) * (right[column * rank + k] as number);
      out[row * columns + column] = sum;
    }
  return out;
}

/** Makes the columns of `rows × rank` numbers orthonormal, one after another. A column that depends on others becomes zero. */
export function orthonormalize(columns: Float32Array, rank: number): void {
  const rows = columns.length / rank;
  const at = (row: number, k: number): number => columns[row * rank + k] as number;
  const dot = (a: number, b: number): number => {
    let sum = 0;
    for (let row = 0; row < rows; row++) sum += at(row, a) * at(row, b);
    return sum;
  };
  for (let k = 0; k < rank; k++) {
    const before = dot(k, k);
    for (let other = 0; other < k; other++) {
      const share = dot(other, k);
      for (let row = 0; row < rows; row++)
        columns[row * rank + k] = at(row, k) - share * at(row, other);
    }
    const square = dot(k, k);
    // What is left of a dependent column is rounding.
    const factor = square > before * 2 ** -40 ? 1 / Math.sqrt(square) : 0;
    for (let row = 0; row < rows; row++) columns[row * rank + k] = at(row, k) * factor;
  }
}
