import type { Binding, DType, Kernel, Launch } from "../src/index.js";

/** y = x + add, over quads: through float32 for float16 on the native tier, as raw words for everything else. */
export const copyKernel: Kernel = {
  name: "copy",
  variant: "",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "write" },
  ],
  scalars: [
    { name: "count", type: "u32" },
    { name: "add", type: "f32", runtime: true },
  ],
  program({ tier, bindings }) {
    const dtype = bindings[0]?.dtype ?? "float32";
    const isHalf = dtype !== "float32";
    const isNative = tier === "native" && dtype === "float16";
    const quad = isNative ? "vec4<f16>" : isHalf ? "vec2u" : "vec4f";
    const value = isNative ? "vec4<f16>(vec4f(x[i]) + s.add)" : isHalf ? "x[i]" : "x[i] + s.add";
    return {
      code: /* wgsl */ `${isNative ? "enable f16;" : ""}
struct Scalars { count: u32, add: f32 }
@group(0) @binding(0) var<storage, read> x: array<${quad}>;
@group(0) @binding(1) var<storage, read_write> y: array<${quad}>;
@group(0) @binding(2) var<uniform> s: Scalars;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i * 4u < s.count) { y[i] = ${value}; }
}`,
      workgroups: ({ count = 0 }) => [Math.ceil(count / 256), 1, 1],
    };
  },
  reference([x, y], { add = 0 }) {
    for (let i = 0; x && y && i < x.length; i++) y[i] = (x[i] as number) + add;
  },
};

export const bind = (
  buffer: GPUBuffer,
  length: number,
  dtype: DType = "float32",
): Binding<GPUBuffer> => ({ buffer, offset: 0, length, dtype });

/** A launch of {@link copyKernel} over the first `count` elements. */
export const copyLaunch = (
  x: GPUBuffer,
  y: GPUBuffer,
  count: number,
  { dtype = "float32", add = 0 }: { dtype?: DType; add?: number } = {},
): Launch<GPUBuffer> => ({
  kernel: copyKernel,
  bindings: [bind(x, count, dtype), bind(y, count, dtype)],
  scalars: { count, add },
});

/** A kernel that keeps the GPU busy, for about a millisecond for each 1,000 rounds on a software adapter. */
export const busyKernel: Kernel = {
  name: "busy",
  variant: "",
  bindings: [{ name: "y", access: "write", dtypes: ["uint32"] }],
  scalars: [{ name: "rounds", type: "u32", runtime: true }],
  program: () => ({
    code: /* wgsl */ `struct Scalars { rounds: u32 }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> s: Scalars;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  var x = id.x;
  for (var k = 0u; k < s.rounds; k++) { x = x * 1664525u + 1013904223u; }
  y[id.x] = x;
}`,
    workgroups: () => [64, 1, 1],
  }),
  reference() {},
};
