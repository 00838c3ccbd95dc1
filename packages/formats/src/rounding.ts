import { exponentOf, powerOfTwo } from "./exponent.js";

/**
 * How a real number is rounded to a number of the format.
 *
 * - `"nearestEven"`: the nearest, ties to the neighbour whose significand ends in 0 (IEEE 754 roundTiesToEven); where neither
 *   does, in float8e8m0fnu, to the larger one;
 * - `"nearestAway"`: the nearest, ties away from zero;
 * - `"towardZero"`, `"down"` (toward −∞), `"up"` (toward +∞);
 * - `"odd"`: exact numbers stay, all others take the neighbour whose significand ends in 1, so that a later rounding to a
 *   narrower format errs only once;
 * - `"stochastic"`: one of the two neighbours, chosen by the random `bits`; the expectation is the number itself, for every
 *   float32 whose last bit lies at most 32 bits below the format's. What a float64 has below the last bit of a float32 is rounded
 *   down, so its expectation is off by less than that bit. The float32 format keeps 32 bits of a float64's fraction.
 */
export type Rounding =
  | "nearestEven"
  | "nearestAway"
  | "towardZero"
  | "down"
  | "up"
  | "odd"
  | "stochastic";

/** Options of encoding numbers. */
export interface EncodeOptions {
  /** Default `"nearestEven"`. */
  readonly rounding?: Rounding;
  /**
   * True turns overflow, and ±Infinity too, into the largest finite number of that sign. Default false: infinity, or NaN in
   * formats that have no infinity, or the largest finite number in those that have neither.
   */
  readonly saturate?: boolean;
  /** Random u32. `"stochastic"` needs it, no other rounding takes it. */
  readonly bits?: number;
}

/** @throws TypeError for what is neither true nor false: the text "false" would count as true */
export function checkSaturate(saturate: unknown): void {
  if (saturate === undefined || typeof saturate === "boolean") return;
  throw new TypeError(`saturate is ${JSON.stringify(saturate)}: it must be true or false`);
}

/**
 * The rounding that options ask for.
 * @throws TypeError if an option is unknown, if `bits` is missing, no u32, or given to another rounding than `"stochastic"`, and if
 * `saturate` is no boolean.
 */
export function roundingOf(options: EncodeOptions | undefined): Rounding {
  for (const name in options)
    if (name !== "rounding" && name !== "saturate" && name !== "bits")
      throw new TypeError(`there is no option ${name}; pass any of rounding, saturate, bits`);
  checkSaturate(options?.saturate);
  const rounding = options?.rounding ?? "nearestEven";
  const bits = options?.bits;
  const isU32 = Number.isInteger(bits) && (bits as number) >= 0 && (bits as number) < 2 ** 32;
  if (rounding === "stochastic" ? !isU32 : bits !== undefined) {
    throw new TypeError(
      `rounding "${String(rounding)}" with bits ${String(bits)}: pass an integer from 0 to 2^32 − 1 with "stochastic", nothing with others`,
    );
  }
  return rounding;
}

/**
 * Whether a magnitude of `whole` and a `fraction` in [0, 1) units rounds to `whole + 1` units.
 * @param threshold in units, for `"stochastic"`: fractions from there on round up.
 */
export function roundsUp(
  rounding: Rounding,
  isNegative: boolean,
  whole: number,
  fraction: number,
  threshold: number,
): boolean {
  switch (rounding) {
    case "nearestEven":
      return fraction > 0.5 || (fraction === 0.5 && (whole & 1) === 1);
    case "nearestAway":
      return fraction >= 0.5;
    case "odd":
      return fraction > 0 && (whole & 1) === 0;
    case "stochastic":
      return fraction >= threshold;
    default:
      return fraction > 0 && rounding === (isNegative ? "down" : "up");
  }
}

/**
 * Whether a rounding can leave the finite numbers, on this side of zero. IEEE 754 §7.4: those that cannot stop at the largest.
 * @throws TypeError if the rounding is unknown.
 */
export function overflows(rounding: Rounding, isNegative: boolean): boolean {
  switch (rounding) {
    case "nearestEven":
    case "nearestAway":
    case "stochastic":
      return true;
    case "down":
      return isNegative;
    case "up":
      return !isNegative;
    case "towardZero":
    case "odd":
      return false;
    default:
      throw new TypeError(
        `unknown rounding "${String(rounding)}": use nearestEven, nearestAway, towardZero, down, up, odd or stochastic`,
      );
  }
}

/**
 * The fraction of a unit from which `"stochastic"` rounds up: 1 − r. The number r in [0, 1) has as many random bits as a
 * float32 has below the unit, up to 32 bits. Rounding a float32 then adds the masked bits to its significand and truncates.
 * The float32 format itself discards bits of a float64.
 * @param unitExponent log₂ of the unit.
 */
export function stochasticThreshold(
  bits: number,
  magnitude: number,
  unitExponent: number,
  mantissaBits: number,
): number {
  const isWide = mantissaBits > 22;
  const lastBit = Math.max(exponentOf(magnitude), isWide ? -1022 : -126) - (isWide ? 52 : 23);
  const scale = powerOfTwo(Math.min(unitExponent - lastBit, 32));
  return 1 - (bits % scale) / scale;
}
