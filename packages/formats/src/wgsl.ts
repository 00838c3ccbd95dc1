/**
 * WGSL conversions between float32 and smaller formats, bit for bit equal to this package's TypeScript side, and the random
 * bits for stochastic rounding. Each constant is a complete declaration of one function that needs no other constant and no
 * `f16` feature; concatenate those that a shader uses.
 *
 * - Encoding rounds to nearest, ties to even: WGSL leaves the rounding of its own conversions open, lets them flush subnormals,
 *   and lets overflow become the largest finite number, which non-finite checks miss. It is integer arithmetic only, so that no
 *   compiler can contract it with the arithmetic before it. `…Saturate` stops at the largest finite number; `…Stochastic`
 *   takes a random u32 for each element and rounds as `encode` does with those `bits`.
 * - Decoding is exact. Subnormals are kept; its one float operation has an exact, normal result.
 * - `round4Float16` and `round4Bfloat16` are both at once, for values that take part in arithmetic at once.
 * - A NaN keeps its sign, both ways, and decoding keeps its payload too where the format has infinities. As bfloat16 it keeps
 *   the upper bits of its payload with the quiet bit set; as float16 it becomes `0x7e00`, as float8e4m3fn `0x7f`, as float8e5m2
 *   `0x7e`. Float4 has no NaN: each becomes 6, as with `saturate: true`, the only mode there.
 * - Quads, of functions with a 4 in their name, have element 0 in the lowest bits: 16-bit codes as the halves of `q.x`, then of
 *   `q.y`, and 8-bit codes as the bytes of one u32. Codes of 4 bits are in the low half of a u32, so that eight are
 *   `encode4_float4e2m1fn(a) | (encode4_float4e2m1fn(b) << 16u)`. These functions have no branches.
 */
export * from "./wgsl/bfloat16.js";
export * from "./wgsl/float4e2m1fn.js";
export * from "./wgsl/float8e4m3fn.js";
export * from "./wgsl/float8e5m2.js";
export * from "./wgsl/float16.js";
export * from "./wgsl/philox.js";
export * from "./wgsl/remainder.js";
