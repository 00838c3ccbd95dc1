import { expect, test } from "vitest";
import {
  encodeArray,
  encodeMx,
  encodeNvfp4,
  encodeScaled,
  exponentHistogram,
  float8e4m3fn,
  float16,
  recommendScale,
  roundArray,
  scaleOf,
} from "./index.js";

test("unknown options are refused", () => {
  const wrong = { roundng: "stochastic" } as never;
  for (const call of [
    () => encodeArray([1], float16, undefined, wrong),
    () => roundArray([1], float16, undefined, wrong),
    () => encodeMx([1], float8e4m3fn, wrong),
    () => encodeNvfp4([1], wrong),
    () => encodeScaled([1], float8e4m3fn, wrong),
    () => scaleOf(1, float16, wrong),
    () => recommendScale(exponentHistogram([1]), float16, wrong),
  ])
    expect(call).toThrow(/there is no option roundng; pass any of/);
  expect(() => encodeNvfp4([1], 5 as never)).toThrow("encodeNvfp4: the options are 5");
});
