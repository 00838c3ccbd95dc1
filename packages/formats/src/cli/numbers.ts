import type { EncodeOptions, FloatFormat } from "../format.js";
import { CliError } from "./errors.js";
import { type Cell, table } from "./table.js";

/** A number as typed, and what was read. */
export interface ParsedNumber {
  readonly input: string;
  readonly value: number;
}

/** A number in one format. `code` is undefined where the format cannot store it: NaN in formats without one. */
interface StoredNumber {
  readonly format: FloatFormat;
  readonly code?: number;
  readonly stored: number;
  /** Number minus input; NaN where that has no meaning. */
  readonly error: number;
  readonly ulp: number;
  readonly kind: string;
}

export interface DescribedNumber extends ParsedNumber {
  readonly formats: readonly StoredNumber[];
}

/** @throws CliError if the text is no number. */
export function parseNumber(text: string): ParsedNumber {
  const input = text.trim();
  const match = /^([+-]?)(.*)$/.exec(input.toLowerCase());
  const sign = match?.[1] === "-" ? -1 : 1;
  const digits = match?.[2] ?? "";
  const value = unsigned(digits);
  if (value === undefined || /^[+-]/.test(digits)) {
    throw new CliError(
      `"${input}" is no number: write 0.1, -6.5e-8, 0xff, 0x1.8p-3, nan or inf; options are in --help`,
    );
  }
  return { input, value: sign * value };
}

function unsigned(digits: string): number | undefined {
  if (digits === "nan") return Number.NaN;
  if (digits === "inf" || digits === "infinity") return Infinity;
  const hexadecimal = /^0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?\d+)$/.exec(digits);
  if (hexadecimal !== null) {
    const [, whole = "", fraction = "", exponent] = hexadecimal;
    // One rounding: up to 53 bits of digits are exact, and so is a power of two. More digits are refused.
    const significant = `${whole}${fraction}`.replace(/^0+/, "");
    const significand = Number.parseInt(significant || "0", 16);
    if (`${whole}${fraction}` === "" || significand > Number.MAX_SAFE_INTEGER) return undefined;
    return scaleByPowerOfTwo(significand, Number(exponent) - 4 * fraction.length);
  }
  if (digits === "" || !/^(0x[0-9a-f]+|0b[01]+|0o[0-7]+|[\d.]+(e[+-]?\d+)?)$/.test(digits)) {
    return undefined;
  }
  const value = Number(digits);
  return Number.isNaN(value) ? undefined : value;
}

/** Rounded once at most, in the last step. */
function scaleByPowerOfTwo(significand: number, exponent: number): number {
  if (significand === 0) return 0;
  const bounded = Math.min(Math.max(exponent, -1200), 1200);
  // Down in one step from where nothing rounds; up in steps that never do.
  if (bounded < -900) return significand * 2 ** -900 * 2 ** (bounded + 900);
  return bounded > 900 ? significand * 2 ** 900 * 2 ** (bounded - 900) : significand * 2 ** bounded;
}

export function describeNumber(
  { input, value }: ParsedNumber,
  formats: readonly FloatFormat[],
  options: EncodeOptions,
): DescribedNumber {
  return { input, value, formats: formats.map((format) => store(value, format, options)) };
}

function store(value: number, format: FloatFormat, options: EncodeOptions): StoredNumber {
  const ulp = format.ulp(value);
  if (Number.isNaN(value) && format.nanEncoding === "none" && !options.saturate) {
    return { format, stored: Number.NaN, error: Number.NaN, ulp, kind: "not storable" };
  }
  const code = format.encode(value, options);
  const stored = format.decode(code);
  const error = stored === value ? 0 : stored - value;
  return { format, code, stored, error, ulp, kind: kindOf(value, stored, format) };
}

function kindOf(value: number, stored: number, format: FloatFormat): string {
  if (Number.isFinite(value) && !Number.isFinite(stored)) {
    return value === 0 || (value < 0 && !format.isSigned) ? "not storable" : "overflow";
  }
  if (Math.abs(value) > format.finfo.max && Math.abs(stored) === format.finfo.max) {
    return "largest";
  }
  if (stored === 0 && value !== 0) return "underflow";
  const { kind } = format.classify(stored);
  return kind === "normal" ? "" : kind;
}

/** Tables for people, one a number. */
export function numbersAsText(numbers: readonly DescribedNumber[], color: boolean): string {
  const blocks = numbers.map(({ input, value, formats }) => {
    const title = numberText(value) === input ? input : `${input} = ${numberText(value)}`;
    const rows = formats.map((each): Cell[] => {
      const { format, code, stored, error, ulp, kind } = each;
      return [
        format.name,
        code === undefined ? "-" : bitsOf(code, format),
        code === undefined ? "-" : hexadecimal(code, format),
        numberText(stored),
        error === 0 ? "0" : short(error),
        short(ulp),
        kind,
      ];
    });
    return `${title}\n${table(["format", "bits", "code", "stored", "error", "ulp", ""], rows, color)}`;
  });
  return blocks.join("\n");
}

export function numbersAsJson(numbers: readonly DescribedNumber[]): string {
  const data = numbers.map(({ input, value, formats }) => ({
    input,
    value: jsonNumber(value),
    formats: formats.map(({ format, code, stored, error, ulp, kind }) => ({
      format: format.name,
      code: code ?? null,
      hex: code === undefined ? null : hexadecimal(code, format),
      bits:
        code === undefined
          ? null
          : bitsOf(code, format)
              .map(({ text }) => text)
              .join(""),
      value: jsonNumber(stored),
      error: jsonNumber(error),
      ulp: jsonNumber(ulp),
      kind: kind === "" ? "normal" : kind,
    })),
  }));
  return `${JSON.stringify({ schema: 1, numbers: data }, undefined, 2)}\n`;
}

function bitsOf(
  code: number,
  format: FloatFormat,
): { text: string; hue: "sign" | "exponent" | "mantissa" }[] {
  const { bits, exponentBits, mantissaBits, isSigned } = format;
  const digits = code.toString(2).padStart(bits, "0");
  const signBits = isSigned ? 1 : 0;
  return (
    [
      { text: digits.slice(0, signBits), hue: "sign" },
      { text: digits.slice(signBits, signBits + exponentBits), hue: "exponent" },
      { text: digits.slice(bits - mantissaBits, bits), hue: "mantissa" },
    ] as const
  ).filter(({ text }) => text !== "");
}

const hexadecimal = (code: number, { bits }: FloatFormat): string =>
  `0x${code.toString(16).padStart(Math.ceil(bits / 4), "0")}`;

const numberText = (value: number): string => (Object.is(value, -0) ? "-0" : String(value));

/** All digits where they are few, else four. */
const short = (value: number): string =>
  String(value).length <= 10 ? String(value) : String(Number(value.toPrecision(4)));

/** JSON has no NaN, infinities or −0. */
const jsonNumber = (value: number): number | string =>
  Number.isFinite(value) && !Object.is(value, -0) ? value : numberText(value);
