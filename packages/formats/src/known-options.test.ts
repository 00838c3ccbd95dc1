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
    () => float16.encode(1, wrong),
    () => float16.round(1, wrong),
    () => encodeArray([1], float16, undefined, wrong),
    () => roundArray([1], float16, undefined, wrong),
    () => encodeMx([1], float8e4m3fn, wrong),
    () => encodeNvfp4([1], wrong),
    () => encodeScaled([1], float8e4m3fn, wrong),
    () => scaleOf(1, float16, wrong),
    () => recommendScale(exponentHistogram([1]), float16, wrong),
  ])
    expect(call).toThrow(/there is no option roundng; pass any of/);
  for (const saturate of ["no", 0, null] as unknown as boolean[])
    for (const call of [
      () => float16.round(1e6, { saturate }),
      () => encodeArray([1e6], float16, undefined, { saturate }),
      () => encodeMx([1e6], float8e4m3fn, { saturate }),
    ])
      expect(call).toThrow(`saturate is ${JSON.stringify(saturate)}: it must be true or false`);
  expect(() => encodeNvfp4([1], 5 as never)).toThrow("encodeNvfp4: the options are 5");
});
