/** Places of an array that are compared: a loader that writes a batch over another changes most of them. */
const mostPlaces = 1024;

/** Arrays of a batch that are compared, and how deep they lie in it: `{ inputs: { ids, mask }, labels }` has depth 2. */
const mostArrays = 64;
const mostDepth = 4;

/** The arrays of numbers in a batch or a sample, to see later whether they were overwritten or replaced. */
export interface Fingerprint {
  readonly batch: unknown;
  readonly arrays: readonly SeenNumbers[];
}

type Numbers = ArrayLike<unknown>;

interface SeenNumbers {
  readonly numbers: Numbers;
  readonly length: number;
  readonly values: readonly unknown[];
}

/** Of arrays of numbers alone: what else callers note in a batch, such as whether it is done, may change. */
export const fingerprintOf = (batch: unknown): Fingerprint => ({
  batch,
  arrays: numbersIn(batch).map((numbers) => ({
    ...{ numbers, length: numbers.length },
    values: valuesOf(numbers, numbers.length),
  })),
});

/** Whether a number has changed since the fingerprint was taken, or another array is in the place of one. */
export function isOverwritten({ batch, arrays }: Fingerprint): boolean {
  const now = new Set(numbersIn(batch));
  // Of more arrays the last ones are not known.
  const areAllKnown = now.size < mostArrays;
  return arrays.some(({ numbers, length, values }) => {
    if (areAllKnown && !now.has(numbers)) return true;
    const present = valuesOf(numbers, length);
    return values.some((value, place) => !Object.is(value, present[place]));
  });
}

function numbersIn(batch: unknown): Numbers[] {
  const found: Numbers[] = [];
  collect(batch, mostDepth, found, new Set());
  return found;
}

function collect(value: unknown, depth: number, found: Numbers[], seen: Set<unknown>): void {
  if (typeof value !== "object" || value === null || found.length === mostArrays) return;
  if (seen.has(value)) return;
  seen.add(value);
  if (isNumbers(value)) {
    found.push(value);
    return;
  }
  // Other lists of elements have no members worth a look, and there may be many.
  if (depth === 0 || ArrayBuffer.isView(value)) return;
  for (const member of membersOf(value)) {
    if (found.length === mostArrays) return;
    collect(member, depth - 1, found, seen);
  }
}

/** What an object holds. Getters are not called: they may compute, or throw. */
function* membersOf(value: object): Generator<unknown> {
  if (value instanceof Map) yield* value.values();
  else
    for (const name of Object.keys(value).slice(0, mostArrays))
      yield Object.getOwnPropertyDescriptor(value, name)?.value;
}

const isNumbers = (value: object): value is Numbers =>
  (ArrayBuffer.isView(value) && "length" in value) ||
  (Array.isArray(value) && typeof value[0] === "number");

function valuesOf(numbers: Numbers, length: number): unknown[] {
  const step = Math.max(1, Math.ceil(length / mostPlaces));
  const values: unknown[] = [];
  for (let i = 0; i < length; i += step) values.push(numbers[i]);
  return values;
}
