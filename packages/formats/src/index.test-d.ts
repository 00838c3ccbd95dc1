import { expectTypeOf, test } from "vitest";
import {
  decodeArray,
  encodeArray,
  type FloatFormat,
  type FormatName,
  float8e4m3fn,
  float16,
  float64,
  formatOf,
  type RealFormat,
  roundArray,
  tfloat32,
} from "./index.js";

test("types", () => {
  expectTypeOf(float16).toEqualTypeOf<FloatFormat<Uint16Array>>();
  expectTypeOf(float16).toExtend<FloatFormat>();
  expectTypeOf(float64).toEqualTypeOf<RealFormat>();
  expectTypeOf(formatOf("float8e4m3fn")).toEqualTypeOf<FloatFormat<Uint8Array>>();
  expectTypeOf(formatOf("float64")).toEqualTypeOf<RealFormat>();
  expectTypeOf(formatOf("float16" as FormatName)).toExtend<FloatFormat>();
  expectTypeOf(tfloat32.createCodes(1)).toEqualTypeOf<Uint32Array>();
  expectTypeOf(encodeArray([1], float16)).toEqualTypeOf<Uint16Array>();
  expectTypeOf(encodeArray([1], float8e4m3fn)).toEqualTypeOf<Uint8Array>();
  expectTypeOf(decodeArray(new Uint16Array(1), float16)).toEqualTypeOf<Float32Array>();
  expectTypeOf(roundArray([1], float16)).toExtend<Float32Array | Float64Array>();
  // @ts-expect-error unknown names are type errors
  formatOf("half");
  // @ts-expect-error unknown roundings are type errors
  float16.encode(1, { rounding: "nearest" });
  // @ts-expect-error a format is constant
  float16.bias = 16;
  // @ts-expect-error float64 has no codes
  float64.encode;
  // @ts-expect-error codes of another width
  encodeArray([1], float16, new Uint8Array(1));
});
