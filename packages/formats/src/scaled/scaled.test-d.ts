import { expectTypeOf, test } from "vitest";
import { float8e4m3fn } from "../float8e4m3fn.js";
import { float16 } from "../float16.js";
import { encodeMx, type MxRule } from "./mx.js";
import { encodeNvfp4 } from "./nvfp4.js";
import { encodeScaled } from "./scaled.js";

test("codes have the format's kind of array", () => {
  expectTypeOf(encodeScaled([1], float16).codes).toEqualTypeOf<Uint16Array>();
  expectTypeOf(encodeScaled([1], float8e4m3fn).codes).toEqualTypeOf<Uint8Array>();
  expectTypeOf(encodeMx([1], float8e4m3fn).scales).toEqualTypeOf<Uint8Array>();
  expectTypeOf(encodeNvfp4([1]).tensorScale).toEqualTypeOf<number>();
});

test("what does not fit is a type error", () => {
  expectTypeOf<MxRule>().toEqualTypeOf<"floor" | "ceil" | "even" | "rceil">();
  // @ts-expect-error elements of MX have at most 8 bits
  encodeMx([1], float16);
  // @ts-expect-error arrays take a seed; random bits are for single numbers
  encodeScaled([1], float16, { rounding: "stochastic", bits: 1 });
  // @ts-expect-error results are constant
  encodeNvfp4([1]).tensorScale = 2;
});
