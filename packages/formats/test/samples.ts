import {
  bfloat16,
  type FloatFormat,
  float4e2m1fn,
  float6e2m3fn,
  float6e3m2fn,
  float8e3m4,
  float8e4m3,
  float8e4m3b11fnuz,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e5m2,
  float8e5m2fnuz,
  float8e8m0fnu,
  float16,
  float32,
  type Rounding,
  tfloat32,
} from "../src/index.js";

/** All formats with codes, the widest first. */
export const allFormats: readonly FloatFormat[] = [
  float32,
  tfloat32,
  float16,
  bfloat16,
  float8e4m3fn,
  float8e5m2,
  float8e4m3fnuz,
  float8e5m2fnuz,
  float8e4m3b11fnuz,
  float8e4m3,
  float8e3m4,
  float8e8m0fnu,
  float6e2m3fn,
  float6e3m2fn,
  float4e2m1fn,
];

/** The formats under test: one alone as by `npm run test:one -- format float8e3m4`, otherwise all. */
export const testedFormats: readonly FloatFormat[] = chosen(process.env.HALFSTEP_ONLY);

function chosen(only: string | undefined): readonly FloatFormat[] {
  const found = allFormats.filter(({ name }) => !only || name === only);
  if (found.length > 0) return found;
  const names = allFormats.map(({ name }) => name).join(", ");
  throw new RangeError(`there is no format ${only}: name one of ${names}`);
}

/** All roundings that need no random bits. */
export const roundings: readonly Exclude<Rounding, "stochastic">[] = [
  "nearestEven",
  "nearestAway",
  "towardZero",
  "down",
  "up",
  "odd",
];

const word = new DataView(new ArrayBuffer(8));

/** The next float64 away from zero (+1) or toward it (−1), by its bits. */
export function step(value: number, by: 1n | -1n): number {
  word.setFloat64(0, value);
  word.setBigUint64(0, word.getBigUint64(0) + by);
  return word.getFloat64(0);
}

/** The code of the largest finite number. */
export const largestCode = (format: FloatFormat): number => format.encode(format.finfo.max);

/** The codes from 0 to that of the largest number: all of them, or where they are many those around powers of two and a sample. */
export function finiteCodes(format: FloatFormat): number[] {
  const last = largestCode(format);
  if (format.bits <= 16) return Array.from({ length: last + 1 }, (_, code) => code);
  const codes = new Set<number>();
  for (let field = 0; field < 2 ** format.exponentBits - 1; field++) {
    const first = field * 2 ** format.mantissaBits;
    const random = (first * 7919 + 104729) % 2 ** format.mantissaBits;
    for (const offset of [-2, -1, 0, 1, 2, random, random + 1]) codes.add(first + offset);
  }
  return [...codes].filter((code) => code >= 0 && code <= last).sort((a, b) => a - b);
}
