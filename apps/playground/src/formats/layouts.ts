import {
  bfloat16,
  type FloatFormat,
  type FormatName,
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
  float64,
  type RealFormat,
  tfloat32,
} from "@halfstep/formats";

/** Any of the sixteen. */
export type LayoutName = FormatName | "float64";

/** What a format's bits are for, and how a number becomes bits and comes back. */
export interface Layout {
  readonly name: LayoutName;
  /** One sentence for people who meet the format for the first time. */
  readonly about: string;
  readonly real: RealFormat;
  readonly isSigned: boolean;
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  /** False where the exponent field 0 holds a normal number, as in float8e8m0fnu. */
  readonly hasSubnormals: boolean;
  /** The bits that a number is stored in, the most significant first; undefined for a NaN where the format has none. */
  bitsOf(value: number): string | undefined;
  /** The number that bits stand for. */
  numberOf(bits: string): number;
}

const coded = (format: FloatFormat, about: string): Layout => ({
  name: format.name,
  about,
  real: format,
  isSigned: format.isSigned,
  exponentBits: format.exponentBits,
  mantissaBits: format.mantissaBits,
  bias: format.bias,
  hasSubnormals: format.hasZero,
  bitsOf: (value) =>
    Number.isNaN(value) && format.nanEncoding === "none"
      ? undefined
      : format.encode(value).toString(2).padStart(format.bits, "0"),
  numberOf: (bits) => format.decode(Number.parseInt(bits, 2)),
});

const view = new DataView(new ArrayBuffer(8));

const doubles: Layout = {
  name: "float64",
  about: "What JavaScript and Python call a number. Training hardly ever needs that much.",
  real: float64,
  isSigned: true,
  exponentBits: 11,
  mantissaBits: 52,
  bias: 1023,
  hasSubnormals: true,
  bitsOf: (value) => {
    view.setFloat64(0, value);
    return view.getBigUint64(0).toString(2).padStart(64, "0");
  },
  numberOf: (bits) => {
    view.setBigUint64(0, BigInt(`0b${bits}`));
    return view.getFloat64(0);
  },
};

/** The formats of `@halfstep/formats`, the widest first. */
export const layouts: readonly Layout[] = [
  doubles,
  coded(float32, "The usual format of training, and the one that masters of weights keep."),
  coded(
    tfloat32,
    "What NVIDIA's matrix units read of a float32: its range, and float16's precision.",
  ),
  coded(bfloat16, "The upper half of a float32: the whole range, two to three digits."),
  coded(float16, "Half precision of IEEE 754: three to four digits, and nothing beyond 65,504."),
  coded(float8e5m2, "Eight bits for gradients: float16 with the last eight bits cut off."),
  coded(
    float8e4m3fn,
    "Eight bits for weights and activations: no infinity, so that it reaches 448.",
  ),
  coded(float8e5m2fnuz, "e5m2 of AMD's MI300: one zero, one NaN, no infinity."),
  coded(float8e4m3fnuz, "e4m3 of AMD's MI300: one zero, one NaN, no infinity."),
  coded(float8e4m3b11fnuz, "e4m3 moved down by four powers of two, for small numbers."),
  coded(float8e4m3, "e4m3 as IEEE 754 would have it, with infinities."),
  coded(float8e3m4, "Eight bits with more precision than range."),
  coded(float8e8m0fnu, "Powers of two and nothing else: the scale of a block in MX formats."),
  coded(float6e3m2fn, "Six bits of an MX block, which has a scale of its own."),
  coded(float6e2m3fn, "Six bits with one more for precision."),
  coded(
    float4e2m1fn,
    "Four bits: these sixteen codes are all there is. 0, ½, 1, 1½, 2, 3, 4, 6, and their negatives.",
  ),
];

const byName = new Map(layouts.map((layout) => [layout.name, layout]));

/** The layout of a name. */
export const layoutOf = (name: LayoutName): Layout => byName.get(name) as Layout;

/** The number of bits of a layout. */
export const widthOf = ({ isSigned, exponentBits, mantissaBits }: Layout): number =>
  (isSigned ? 1 : 0) + exponentBits + mantissaBits;
