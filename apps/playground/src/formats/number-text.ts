const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** An integer as an exponent: −14 is ⁻¹⁴. */
const superscript = (n: number): string =>
  String(n)
    .replace("-", "⁻")
    .replace(/\d/g, (digit) => superscripts[Number(digit)] as string);

/** A power of two as it is written: 2⁻¹⁴. */
export const powerText = (exponent: number): string => `2${superscript(exponent)}`;

/** A number for reading: grouped digits where they are few, a power of ten elsewhere. */
export function numberText(value: number, digits = 7): string {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 || Object.is(value, -0) ? "−" : "";
  const magnitude = Math.abs(value);
  if (magnitude === Infinity) return `${sign}∞`;
  if (magnitude === 0) return `${sign}0`;
  if (magnitude >= 1e-4 && magnitude < 1e9) {
    return sign + magnitude.toLocaleString("en-US", { maximumSignificantDigits: digits });
  }
  const [significand = "", exponent = ""] = magnitude.toExponential(digits - 1).split("e");
  return `${sign}${Number(significand)} × 10${superscript(Number(exponent))}`;
}

/** A share from 0 to 1 in per cent, with as many digits as tell it from 0 and from 100 %. */
export function percentText(share: number): string {
  if (share === 0 || share === 1) return `${100 * share} %`;
  if (share < 1e-4) return "< 0.01 %";
  if (share > 0.999) return "> 99.9 %";
  return `${(100 * share).toPrecision(share < 0.1 ? 2 : 3)} %`;
}

/** Bytes in the unit in which they are few. */
export function bytesText(bytes: number): string {
  if (bytes < 2 ** 10) return `${bytes} B`;
  return bytes < 2 ** 20
    ? `${(bytes / 2 ** 10).toFixed(0)} KiB`
    : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

const named = new Map(
  Object.entries({
    inf: Infinity,
    infinity: Infinity,
    "∞": Infinity,
    nan: Number.NaN,
    pi: Math.PI,
    π: Math.PI,
    e: Math.E,
  }),
);

/**
 * A number as people type it: `0.1`, `0,1`, `1e-7`, `2^-14`, `1/3`, `3 * 2^-24`, `1,000`, `inf`. Undefined for anything else, and for what is
 * beyond float64.
 */
export function parseNumber(text: string): number | undefined {
  const compact = text
    .toLowerCase()
    .replaceAll(/[\s_]/g, "")
    .replaceAll("−", "-")
    .replaceAll("×", "*");
  if (compact === "") return undefined;
  let result: number | undefined;
  for (const [, operator = "", factor = ""] of compact.matchAll(/([*/]?)([^*/]*)/g)) {
    if (operator === "" && factor === "") continue;
    const value = parsePower(factor);
    if (value === undefined || (operator !== "" && result === undefined)) return undefined;
    result = operator === "/" ? (result as number) / value : (result ?? 1) * value;
  }
  return result;
}

function parsePower(text: string): number | undefined {
  const [base = "", exponent, ...rest] = text.split("^");
  const value = parseLiteral(base);
  if (exponent === undefined || value === undefined) return value;
  const power = parseLiteral(exponent);
  if (rest.length > 0 || power === undefined) return undefined;
  const result = base.startsWith("-") ? -((-value) ** power) : value ** power;
  const isBeyond = Math.abs(result) === Infinity && value !== 0 && Number.isFinite(value);
  return isBeyond ? undefined : result;
}

/** Digits without commas: those between groups of three vanish, and a single other one is a decimal point. Undefined where commas mean neither. */
function withoutCommas(digits: string): string | undefined {
  if (!digits.includes(",")) return digits;
  if (/^[1-9]\d{0,2}(,\d{3})+(\.\d*)?(e[+-]?\d+)?$/.test(digits)) return digits.replaceAll(",", "");
  return /^[^.,]*,[^.,]*$/.test(digits) ? digits.replace(",", ".") : undefined;
}

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

function parseLiteral(text: string): number | undefined {
  const isNegative = text.startsWith("-");
  const unsigned = withoutCommas(text.replace(/^[+-]/, "")) ?? "";
  const value =
    named.get(unsigned) ??
    (/^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(unsigned) ? finite(Number(unsigned)) : undefined);
  return value === undefined ? undefined : isNegative ? -value : value;
}
