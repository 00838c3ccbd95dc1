/** Places of an array that are compared: a loader that writes a batch over another changes most of them. */
const mostPlaces = 1024;

/** Values of the arrays in a batch, to see later whether they were overwritten. */
export type Fingerprint = readonly {
  readonly array: Numbers;
  readonly values: readonly unknown[];
}[];

type Numbers = ArrayLike<number | bigint>;

/** Of a batch that is an array, an object or a list of arrays: loaders return no others that they could write over. */
export const fingerprintOf = (batch: unknown): Fingerprint =>
  [batch, ...(typeof batch === "object" && batch !== null ? Object.values(batch) : [])]
    .filter(isNumbers)
    .map((array) => ({ array, values: valuesOf(array) }));

/** Whether an array has changed since its fingerprint was taken. */
export const isOverwritten = (fingerprint: Fingerprint): boolean =>
  fingerprint.some(({ array, values }) =>
    valuesOf(array).some((value, i) => !Object.is(value, values[i])),
  );

const isNumbers = (value: unknown): value is Numbers =>
  ArrayBuffer.isView(value) && "length" in value;

function valuesOf(array: Numbers): unknown[] {
  const step = Math.max(1, Math.ceil(array.length / mostPlaces));
  const values: unknown[] = [];
  for (let i = 0; i < array.length; i += step) values.push(array[i]);
  return values;
}
