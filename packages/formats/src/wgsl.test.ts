import { expect, test } from "vitest";
import * as wgsl from "./wgsl.js";

const constants = Object.entries(wgsl);

test("each constant declares one function of its own, without the f16 feature", () => {
  const declared = constants.map(([, code]) =>
    [...code.matchAll(/^fn (\w+)/gm)].map(([, name]) => name),
  );
  expect(declared.every((names) => names.length === 1)).toBe(true);
  expect(declared.flat().sort()).toEqual([
    "bf16_bits_to_f32",
    "decode4_bfloat16",
    "decode4_float16",
    "decode4_float4e2m1fn",
    "decode4_float8e4m3fn",
    "decode4_float8e5m2",
    "encode4_bfloat16",
    "encode4_bfloat16_stochastic",
    "encode4_float16",
    "encode4_float16_stochastic",
    "encode4_float4e2m1fn",
    "encode4_float4e2m1fn_stochastic",
    "encode4_float8e4m3fn",
    "encode4_float8e4m3fn_saturate",
    "encode4_float8e4m3fn_saturate_stochastic",
    "encode4_float8e4m3fn_stochastic",
    "encode4_float8e5m2",
    "encode4_float8e5m2_saturate",
    "encode4_float8e5m2_saturate_stochastic",
    "encode4_float8e5m2_stochastic",
    "f16_bits_to_f32",
    "f32_to_bf16_bits",
    "f32_to_bf16_bits_stochastic",
    "f32_to_f16_bits",
    "f32_to_f16_bits_stochastic",
    "f32_to_f4e2m1fn_bits",
    "f32_to_f4e2m1fn_bits_stochastic",
    "f32_to_f8e4m3fn_bits",
    "f32_to_f8e4m3fn_bits_saturate",
    "f32_to_f8e4m3fn_bits_saturate_stochastic",
    "f32_to_f8e4m3fn_bits_stochastic",
    "f32_to_f8e5m2_bits",
    "f32_to_f8e5m2_bits_saturate",
    "f32_to_f8e5m2_bits_saturate_stochastic",
    "f32_to_f8e5m2_bits_stochastic",
    "f4e2m1fn_bits_to_f32",
    "f8e4m3fn_bits_to_f32",
    "f8e5m2_bits_to_f32",
    "join4_float32",
    "join_f32",
    "philox4x32",
    "round4_bfloat16",
    "round4_float16",
    "split4_float32",
    "split_f32",
  ]);
});

test("nothing depends on what WGSL leaves open", () => {
  // Features, conversions whose rounding is open, comparisons that hold for numbers only, float functions that lose NaN.
  const open = /\bf16\b|\bvec\dh\b|enable|pack|quantize|!=|==|\b(abs|clamp|floor|trunc)\(/;
  expect(constants.filter(([, code]) => open.test(code)).map(([name]) => name)).toEqual([]);
});

test("generated functions read like written ones", () => {
  expect(wgsl.encode4Float8e4m3fnSaturate).toMatchInlineSnapshot(`
    "
    fn encode4_float8e4m3fn_saturate(x: vec4f) -> u32 {
      let u = bitcast<vec4u>(x);
      let a = max(u & vec4u(0x7fffffffu), vec4u(0x39800000u));
      let e = a >> vec4u(23u);
      let c = min(e, vec4u(0x79u));
      let m = (a & vec4u(0x7fffffu)) | vec4u(0x800000u);
      let d = 141u - c;
      let r = (m + (vec4u(0xffffffffu) >> (33u - d)) + ((m >> d) & vec4u(1u))) >> d;
      let h = min(((e - c) << vec4u(3u)) + r, vec4u(0x7eu));
      let code = select(h, vec4u(0x7fu), a > vec4u(0x7f800000u)) | ((u >> vec4u(24u)) & vec4u(0x80u));
      let q = code << vec4u(0u, 8u, 16u, 24u);
      return q.x | q.y | q.z | q.w;
    }
    "
  `);
  expect(wgsl.decodeFloat16).toMatchInlineSnapshot(`
    "
    fn f16_bits_to_f32(h: u32) -> f32 {
      let t = h << 16u;
      let a = (t >> 3u) & 0xfffe000u;
      let n = a + select(0x38000000u, 0x70000000u, a >= 0xf800000u);
      let s = bitcast<u32>(bitcast<f32>(a + 0x38800000u) - 0x1p-14f);
      return bitcast<f32>((t & 0x80000000u) | select(n, s, a < 0x800000u));
    }
    "
  `);
});
