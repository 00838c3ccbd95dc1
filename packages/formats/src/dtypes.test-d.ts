import { expectTypeOf, test } from "vitest";
import {
  type DType,
  dtypes,
  type Float8DType,
  type FloatDType,
  type FloatRecord,
  type HalfDType,
  type IntegerDType,
  type IntegerRecord,
  isFloat8,
  isFloating,
  isHalf,
  isInteger,
  isNarrow,
  type NarrowDType,
} from "./dtypes.js";

test("the table has a record for each dtype", () => {
  expectTypeOf<keyof typeof dtypes>().toEqualTypeOf<DType>();
  expectTypeOf(dtypes.float16).toEqualTypeOf<FloatRecord>();
  expectTypeOf(dtypes.int32).toEqualTypeOf<IntegerRecord>();
});

test("dtypes are narrowed by what they are", () => {
  const dtype = "float32" as DType;
  if (isFloating(dtype)) expectTypeOf(dtype).toEqualTypeOf<FloatDType>();
  if (isInteger(dtype)) expectTypeOf(dtype).toEqualTypeOf<IntegerDType>();
  if (isNarrow(dtype)) expectTypeOf(dtype).toEqualTypeOf<NarrowDType>();
  if (isHalf(dtype)) expectTypeOf(dtype).toEqualTypeOf<HalfDType>();
  if (isFloat8(dtype)) expectTypeOf(dtype).toEqualTypeOf<Float8DType>();
});
