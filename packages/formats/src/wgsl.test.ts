import { expect, test } from "vitest";
import * as wgsl from "./wgsl.js";

test("each constant declares one function of its own, without the f16 feature", () => {
  const declared = Object.values(wgsl).map((code) =>
    [...code.matchAll(/^fn (\w+)/gm)].map(([, name]) => name),
  );
  expect(declared.flat().sort()).toEqual([
    "bf16_bits_to_f32",
    "decode4_bfloat16",
    "decode4_float16",
    "encode4_bfloat16",
    "encode4_float16",
    "f16_bits_to_f32",
    "f32_to_bf16_bits",
    "f32_to_f16_bits",
  ]);
  expect(declared.every((names) => names.length === 1)).toBe(true);
  const code = Object.values(wgsl).join("");
  expect(code).not.toMatch(/\bf16\b|\bvec\dh\b|enable/);
  // A conversion must not reach for the built-ins whose rounding WGSL leaves open.
  expect(code).not.toMatch(/pack2x16float/);
});
