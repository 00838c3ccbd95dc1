/**
 * Throws unless `options` has all required members, for callers without types.
 *
 * @param wanted the description of each required option for errors, by name; that of a function begins with "a
 * function"
 * @throws TypeError that names all that are missing
 */
export function requireOptions(
  name: string,
  options: unknown,
  wanted: Readonly<Record<string, string>>,
): void {
  const given = isObject(options) ? options : {};
  const missing = Object.entries(wanted).filter(([key, what]) =>
    what.startsWith("a function") ? typeof given[key] !== "function" : given[key] === undefined,
  );
  if (missing.length === 0 && isObject(options)) return;
  const list = missing.map(([key, what]) => `${key} (${what})`).join(", ");
  throw new TypeError(`${name} takes an object with options: pass ${list}`);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
