/** A value as errors name it. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

/** Throws a RangeError unless an attribute is a finite number with `least ≤ value ≤ most`. */
export function requireWithin(
  op: string,
  name: string,
  value: number,
  least: number,
  most: number = Number.MAX_VALUE,
): void {
  if (typeof value === "number" && value >= least && value <= most) return;
  const range = most === Number.MAX_VALUE ? `of at least ${least}` : `from ${least} to ${most}`;
  throw new RangeError(`${op}: ${name} is ${shown(value)}: it must be a number ${range}`);
}

/** Throws a RangeError unless an attribute is a finite number. */
export function requireFinite(op: string, name: string, value: number): void {
  if (!Number.isFinite(value))
    throw new RangeError(`${op}: ${name} is ${shown(value)}: it must be a finite number`);
}

/** Throws a RangeError unless an attribute is a whole number with `least ≤ value ≤ most`. */
export function requireWhole(
  op: string,
  name: string,
  value: number,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new RangeError(
    `${op}: ${name} is ${shown(value)}: it must be a whole number from ${least} to ${most}`,
  );
}

/** Throws a RangeError unless an attribute is one of the choices. */
export function requireOneOf(
  op: string,
  name: string,
  value: string,
  choices: readonly string[],
): void {
  if (!choices.includes(value))
    throw new RangeError(`${op}: ${name} is ${shown(value)}: choose one of ${choices.join(", ")}`);
}

/** Throws a TypeError unless an attribute is a pair of numbers, such as a stride. */
export function requirePair(op: string, name: string, value: readonly unknown[]): void {
  if (!Array.isArray(value) || value.length !== 2)
    throw new TypeError(
      `${op}: ${name} is ${shown(value)}: give two numbers, vertical and horizontal`,
    );
}
