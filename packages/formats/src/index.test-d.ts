import { expectTypeOf, test } from "vitest";
import {
  decodeArray,
  encodeArray,
  type FloatFormat,
  type FormatName,
  float16,
  formatOf,
  roundArray,
} from "./index.js";

test("types", () => {
  expectTypeOf(float16).toEqualTypeOf<FloatFormat>();
  expectTypeOf<FormatName>().toEqualTypeOf<"float16" | "bfloat16">();
  expectTypeOf(encodeArray([1], float16)).toEqualTypeOf<Uint16Array>();
  expectTypeOf(decodeArray(new Uint16Array(1), float16)).toEqualTypeOf<Float32Array>();
  expectTypeOf(roundArray([1], float16)).toEqualTypeOf<Float32Array>();
  // @ts-expect-error unknown names are type errors
  formatOf("half");
  // @ts-expect-error unknown roundings are type errors
  float16.encode(1, { rounding: "nearest" });
  // @ts-expect-error a format is constant
  float16.bias = 16;
});
