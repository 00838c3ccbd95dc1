import type { Carrier } from "./carrier.js";
import type { Wire } from "./wire/wire.js";

/** An argument for an error about it, on one line. */
function described(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

/** @throws TypeError for options that are no object; RangeError for unknown ones: a misspelt option would keep its default */
export function requireOptions(call: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TypeError(`${call}: the options are ${described(options)}: pass an object`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new RangeError(`${call}: there is no option ${unknown}; pass any of ${known.join(", ")}`);
}

/** @throws TypeError for what is no carrier */
export function requireCarrier(call: string, carrier: Carrier): void {
  if (typeof (carrier as Partial<Carrier> | undefined)?.allGather !== "function")
    throw new TypeError(
      `${call}: the carrier is ${described(carrier)}: pass what await init() or inProcess() gives`,
    );
}

/** @throws RangeError for what is none of some names */
export function requireOneOf(name: string, value: unknown, known: readonly string[]): void {
  if (!known.includes(value as string))
    throw new RangeError(
      `${name} is ${described(value)}: it must be ${known.map((each) => JSON.stringify(each)).join(", ")}`,
    );
}

const wires: readonly Wire[] = ["float32", "float16", "bfloat16", "auto"];

/** @throws RangeError for what is no format of a wire */
export const requireWire = (wire: Wire): void => requireOneOf("wire", wire, wires);

/** @throws RangeError for a weight below 0 or that is not finite */
export function requireWeight(weight: number | undefined): void {
  if (weight === undefined || (Number.isFinite(weight) && weight >= 0)) return;
  throw new RangeError(`weight is ${described(weight)}: it must be a number from 0 on`);
}

/** @throws RangeError for a deadline that is no time */
export function requireDeadline(deadline: number): void {
  if (typeof deadline === "number" && deadline > 0) return;
  throw new RangeError(
    `deadline is ${described(deadline)}: it must be milliseconds, a number above 0`,
  );
}

/** @throws TypeError for what has no numbers to average */
export function requireFloats(call: string, values: Float32Array): void {
  if (Object.prototype.toString.call(values) !== "[object Float32Array]")
    throw new TypeError(`${call}: the numbers are ${described(values)}: pass a Float32Array`);
}
