/** Places of an array that are compared: a loader that writes a batch over another changes most of them. */
const mostPlaces = 1024;

/** What is in a batch or a sample, to see later whether it was overwritten. */
export type Fingerprint = readonly {
  readonly held: Held;
  readonly values: readonly unknown[];
}[];

/** A list of numbers, or a plain object or list of others. */
type Held = ArrayLike<unknown> | Readonly<Record<string, unknown>>;

/** Of an array of numbers, or of a plain object or list, with the arrays of numbers in it: loaders return no others that they could write over. */
export function fingerprintOf(batch: unknown): Fingerprint {
  const isPlain = Array.isArray(batch) || isPlainObject(batch);
  const held = isPlain ? [batch, ...Object.values(batch).filter(isNumbers)] : [batch];
  return held
    .filter((each): each is Held => isPlain || isNumbers(each))
    .map((each) => ({ held: each, values: valuesOf(each) }));
}

/** Whether something has changed since its fingerprint was taken. */
export const isOverwritten = (fingerprint: Fingerprint): boolean =>
  fingerprint.some(({ held, values }) => {
    const now = valuesOf(held);
    return now.length !== values.length || now.some((value, i) => !Object.is(value, values[i]));
  });

const isNumbers = (value: unknown): value is ArrayLike<unknown> =>
  (ArrayBuffer.isView(value) && "length" in value) ||
  (Array.isArray(value) && typeof value[0] === "number");

const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" &&
  value !== null &&
  [Object.prototype, null].includes(Object.getPrototypeOf(value));

function valuesOf(held: Held): unknown[] {
  const list = isNumbers(held) || Array.isArray(held) ? held : Object.values(held);
  const step = Math.max(1, Math.ceil(list.length / mostPlaces));
  const values: unknown[] = [];
  for (let i = 0; i < list.length; i += step) values.push(list[i]);
  return values;
}
