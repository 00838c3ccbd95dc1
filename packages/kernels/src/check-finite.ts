import type { Binding, DType, HalfDType, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";

/** Quads that one invocation looks at, so that a clean buffer costs few invocations. */
const quadsEach = 8;
const groupSize = 64;

/** What is read from a float32 flag by kernels that change it: 1 where it is set. */
export const flagBits = 0x3f80_0000;

/**
 * WGSL `nonfinite_x(q: u32) -> vec4<bool>`: which elements of quad q of binding `x` are ±infinity or NaN. It looks at
 * bits in memory, because compilers of WGSL may assume that no float is infinite or NaN.
 */
export function nonFiniteWgsl(
  x: string,
  { dtype, rounding }: { readonly dtype: DType; readonly rounding?: HalfDType },
): string {
  const head = `fn nonfinite_${x}(q: u32) -> vec4<bool> {`;
  if (rounding || dtype === "float32")
    return `${head} return (bitcast<vec4u>(load_${x}(q)) & vec4u(0x7f800000u)) == vec4u(0x7f800000u); }\n`;
  const exponent = dtype === "float16" ? "0x7c00u" : "0x7f80u";
  return `${head}
  let w = ${x}_data[q];
  return (vec4u(w.x, w.x >> 16u, w.y, w.y >> 16u) & vec4u(${exponent})) == vec4u(${exponent});
}
`;
}

/** WGSL: which elements of quad q lie before `count`. */
export const inRangeWgsl = "(vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count)";

const kernel = defineKernel({
  name: "check-finite",
  bindings: [
    { name: "x", access: "read" },
    { name: "foundInf", access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: ({ bindings: [x] }) => `${nonFiniteWgsl("x", x as { dtype: DType })}
${linearMain(groupSize)}
  let first = index % ${groupSize}u + index / ${groupSize}u * ${groupSize * quadsEach}u;
  var bad = vec4<bool>();
  for (var k = 0u; k < ${quadsEach}u; k++) {
    let q = first + k * ${groupSize}u;
    if (q * 4u >= s.count) { break; }
    bad |= nonfinite_x(q) & (${inRangeWgsl});
  }
  if (any(bad)) { or_foundInf(0u, ${flagBits}u); }
}
`,
  workgroups: ({ count }) =>
    linearWorkgroups(Math.ceil((count as number) / 4), groupSize * quadsEach),
  reference([x, foundInf]) {
    if (x?.some((value) => !Number.isFinite(value))) setFlag(foundInf);
  },
});

/** Sets a float32 flag that a kernel reaches as bits. With float64 arithmetic the CPU keeps the number itself. */
export function setFlag(flag: { [index: number]: number } | undefined): void {
  if (flag) flag[0] = flag instanceof Float64Array ? 1 : flagBits;
}

/**
 * Sets the float32 `foundInf[0]` to 1 where any element of `x` is ±infinity or NaN, tested on bits, and leaves it
 * otherwise. Exact for every length, index and storage of `x`.
 */
export function checkFinite<B>(operands: {
  readonly x: Binding<B>;
  readonly foundInf: B;
}): Launch<B> {
  const { x, foundInf } = operands;
  return {
    kernel,
    bindings: [x, { buffer: foundInf, offset: 0, length: 1, dtype: "uint32" }],
    scalars: { count: x.length },
  };
}
