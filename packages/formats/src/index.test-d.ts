import { expectTypeOf, test } from "vitest";
import {
  type Classification,
  type CodeArray,
  decodeArray,
  type EncodeOptions,
  encodeArray,
  type FloatFormat,
  type FormatName,
  float8e4m3fn,
  float16,
  float32,
  float64,
  formatOf,
  type RealFormat,
  type Rounding,
  roundArray,
  tfloat32,
} from "./index.js";

test("a format knows the arrays of its codes", () => {
  expectTypeOf(float16).toEqualTypeOf<FloatFormat<Uint16Array>>();
  expectTypeOf(tfloat32.createCodes(1)).toEqualTypeOf<Uint32Array>();
  expectTypeOf(encodeArray([1], float16)).toEqualTypeOf<Uint16Array>();
  expectTypeOf(encodeArray([1], float8e4m3fn)).toEqualTypeOf<Uint8Array>();
  expectTypeOf(encodeArray([1], float16 as FloatFormat)).toEqualTypeOf<CodeArray>();
  expectTypeOf(decodeArray(new Uint16Array(1), float16)).toEqualTypeOf<Float32Array>();
  expectTypeOf(roundArray([1], float16)).toExtend<Float32Array | Float64Array>();
  // @ts-expect-error codes of another width
  encodeArray([1], float16, new Uint8Array(1));
});

test("every format is a FloatFormat, and every one a RealFormat", () => {
  expectTypeOf(float16).toExtend<FloatFormat>();
  expectTypeOf<FloatFormat>().toExtend<RealFormat>();
  expectTypeOf(float64).toEqualTypeOf<RealFormat>();
  expectTypeOf([float16, float8e4m3fn, float32]).toExtend<readonly FloatFormat[]>();
  // @ts-expect-error float64 has no codes
  float64.encode;
  // @ts-expect-error a format is constant
  float16.bias = 16;
  // @ts-expect-error so are its limits
  float16.finfo.max = 1;
});

test("names lead to formats", () => {
  expectTypeOf(formatOf("float8e4m3fn")).toEqualTypeOf<FloatFormat<Uint8Array>>();
  expectTypeOf(formatOf("float64")).toEqualTypeOf<RealFormat>();
  expectTypeOf(formatOf("float16" as FormatName)).toExtend<FloatFormat>();
  expectTypeOf(formatOf("float16" as FormatName | "float64")).toEqualTypeOf<RealFormat>();
  expectTypeOf<"bfloat16">().toExtend<FormatName>();
  expectTypeOf<"float64">().not.toExtend<FormatName>();
  // @ts-expect-error unknown names are type errors
  formatOf("half");
});

test("options and answers", () => {
  expectTypeOf<EncodeOptions["rounding"]>().toEqualTypeOf<Rounding | undefined>();
  expectTypeOf(float64.classify(1)).toEqualTypeOf<Classification>();
  expectTypeOf<Classification["kind"]>().toEqualTypeOf<
    "nan" | "infinity" | "normal" | "subnormal" | "zero"
  >();
  // @ts-expect-error unknown roundings are type errors
  float16.encode(1, { rounding: "nearest" });
  // @ts-expect-error a BigInt is no number
  float16.encode(1n);
});
