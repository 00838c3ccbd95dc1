/** The path of the first difference between two states, compared bit by bit; undefined where they are equal. */
export function differenceOf(
  found: unknown,
  expected: unknown,
  path = "state",
): string | undefined {
  if (Object.is(found, expected)) return undefined;
  if (!isObject(found) || !isObject(expected)) return path;
  if (found.constructor !== expected.constructor && !(isPlain(found) && isPlain(expected)))
    return `the type of ${path}`;
  const keys = Object.keys(expected);
  if (Object.keys(found).length !== keys.length) return `the members of ${path}`;
  for (const key of keys) {
    const difference = differenceOf(found[key], expected[key], `${path}.${key}`);
    if (difference) return difference;
  }
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const isPlain = (value: object): boolean => {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
};
