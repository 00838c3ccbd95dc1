import type { Layout } from "./layouts.js";
import { numberText, powerText } from "./number-text.js";

/** What became of a number that was stored. */
type Outcome = "exact" | "rounded" | "zero" | "infinite" | "notANumber" | "largest" | "refused";

/** A number as a format keeps it. */
export interface Stored {
  /** NaN where the format refuses the number. */
  readonly value: number;
  readonly outcome: Outcome;
  /** (stored − wished) / |wished|; 0 where it has no meaning. */
  readonly error: number;
}

/** Stores a number in a format, rounded to nearest even. */
export function store({ real, bitsOf }: Layout, wished: number): Stored {
  if (Number.isNaN(wished)) {
    const outcome = bitsOf(wished) === undefined ? "refused" : "exact";
    return { value: Number.NaN, outcome, error: 0 };
  }
  const value = real.round(wished);
  if (Object.is(value, wished) || value === wished) return { value, outcome: "exact", error: 0 };
  if (Number.isNaN(value)) return { value, outcome: "notANumber", error: 0 };
  if (Math.abs(value) === Infinity) return { value, outcome: "infinite", error: 0 };
  const error = Math.abs(wished) === Infinity ? 0 : (value - wished) / Math.abs(wished);
  if (value === 0) return { value, outcome: "zero", error };
  const { max, min } = real.finfo;
  const isCut = (value === max && wished > max) || (value === min && wished < min);
  return { value, outcome: isCut ? "largest" : "rounded", error };
}

/** The loss in a few words, which say more than a colour. */
export function lossText({ outcome, error }: Stored): string {
  switch (outcome) {
    case "exact":
      return "exact";
    case "rounded":
      return errorText(error);
    case "zero":
      return "becomes 0";
    case "infinite":
      return "becomes ∞";
    case "notANumber":
      return "becomes NaN";
    case "largest":
      return "cut to its largest";
    case "refused":
      return "has no NaN";
  }
}

function errorText(error: number): string {
  const percent = Math.abs(100 * error);
  const sign = error < 0 ? "−" : "+";
  if (percent >= 0.001) return `${sign}${Number(percent.toPrecision(2))} %`;
  return `${sign}${numberText(percent, 2)} %`;
}

/** The three fields of a code, read. */
export interface Fields {
  readonly sign: string;
  readonly exponent: string;
  readonly mantissa: string;
  readonly kind: "normal" | "subnormal" | "zero" | "infinity" | "nan";
  /** What each field says, in words. */
  readonly said: { readonly sign: string; readonly exponent: string; readonly mantissa: string };
  /** How the fields make the number: `2⁻⁴ × (1 + 614/1,024)`. */
  readonly formula: string;
}

/** Reads the fields of a code. */
export function fieldsOf(layout: Layout, bits: string): Fields {
  const { isSigned, exponentBits, mantissaBits, bias, hasSubnormals, real, numberOf } = layout;
  const start = isSigned ? 1 : 0;
  const sign = bits.slice(0, start);
  const exponent = bits.slice(start, start + exponentBits);
  const mantissa = bits.slice(start + exponentBits);
  const value = numberOf(bits);
  const field = Number.parseInt(exponent, 2);
  const fraction = mantissa === "" ? 0 : Number.parseInt(mantissa, 2);
  const isSubnormal = field === 0 && hasSubnormals;
  const kind = Number.isNaN(value)
    ? "nan"
    : Math.abs(value) === Infinity
      ? "infinity"
      : value === 0
        ? "zero"
        : Math.abs(value) < real.finfo.smallestNormal
          ? "subnormal"
          : "normal";
  const power = (isSubnormal ? 1 : field) - bias;
  const of = (2 ** mantissaBits).toLocaleString("en-US");
  const part = `${fraction.toLocaleString("en-US")}/${of}`;
  const minus = sign === "1" ? "−" : "";
  const significand = mantissaBits === 0 ? "" : isSubnormal ? ` × ${part}` : ` × (1 + ${part})`;
  return {
    sign,
    exponent,
    mantissa,
    kind,
    said: {
      sign: sign === "1" ? "negative" : "positive",
      exponent:
        kind === "infinity"
          ? "all ones: infinity"
          : kind === "nan"
            ? "not a number"
            : isSubnormal
              ? `zero stands for ${power}, without the 1`.replace("-", "−")
              : `${field} − ${bias} = ${power}`.replaceAll("-", "−"),
      mantissa: mantissaBits === 0 ? "none" : `${part}`,
    },
    formula:
      kind === "nan"
        ? "not a number"
        : kind === "infinity"
          ? `${minus}∞`
          : kind === "zero"
            ? `${minus}0`
            : `${minus}${powerText(power)}${significand}`,
  };
}

/** A sentence that says what became of a number, for people who do not see the page. */
export function storySentence(layout: Layout, wished: number, stored: Stored): string {
  const loss = lossText(stored);
  return stored.outcome === "exact"
    ? `${layout.name} stores ${numberText(wished)} exactly.`
    : `${layout.name} stores ${numberText(wished)} as ${numberText(stored.value, 12)}: ${loss}.`;
}
