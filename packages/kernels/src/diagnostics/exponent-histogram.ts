import type { Binding, KernelView, Launch } from "@halfstep/device";
import { EXPONENT_BINS } from "@halfstep/grad-scaler";
import { defineKernel } from "../kernel.js";

const groupSize = 256;

/** Consecutive quads of one invocation. */
const quadsEach = 8;
const blockSize = groupSize * quadsEach;
const maxGroups = 256;

const kernel = defineKernel({
  name: "exponent-histogram",
  bindings: [
    { name: "x", access: "read" },
    { name: "exponents", access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  // A workgroup counts in its own memory, and adds to each shared bin once. Sums of integers are the same in any order.
  body: () => `var<workgroup> counts: array<atomic<u32>, ${EXPONENT_BINS}>;
@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  for (var block = group.x * ${blockSize}u; block * 4u < s.count; block += groups.x * ${blockSize}u) {
    // CPU adapters are slower where they unroll: this loop has no length that is known.
    let end = min(block + ${blockSize}u, (s.count + 3u) / 4u);
    for (var q = block + local; q < end; q += ${groupSize}u) {
        let fields = (bitcast<vec4u>(load_x(q)) >> vec4u(23u)) & vec4u(255u);
        atomicAdd(&counts[fields.x], 1u);
        if (q * 4u + 1u < s.count) { atomicAdd(&counts[fields.y], 1u); }
        if (q * 4u + 2u < s.count) { atomicAdd(&counts[fields.z], 1u); }
        if (q * 4u + 3u < s.count) { atomicAdd(&counts[fields.w], 1u); }
    }
  }
  workgroupBarrier();
  let count = atomicLoad(&counts[local]);
  if (count > 0u) { add_exponents(local, count); }
}
`,
  workgroups: ({ count }) => [
    Math.min(Math.ceil(Math.ceil((count as number) / 4) / blockSize), maxGroups),
    1,
    1,
  ],
  reference([x, exponents]) {
    const values = x as KernelView;
    const counts = exponents as KernelView;
    const value = new Float32Array(1);
    const bits = new Uint32Array(value.buffer);
    for (let i = 0; i < values.length; i++) {
      value[0] = values[i] as number;
      const field = ((bits[0] as number) >>> 23) & 255;
      counts[field] = (counts[field] as number) + 1;
    }
  },
});

/**
 * Adds to the 256 uint32 `exponents[k]` how many elements of `x` have k as their float32 exponent field: 0 for zeros and
 * subnormal numbers, 255 for infinities and NaN, and else 127 + ⌊log2 |x|⌋. The same bits in any order of execution.
 */
export function countExponents<B>(operands: {
  readonly x: Binding<B>;
  readonly exponents: B;
}): Launch<B> {
  const { x, exponents } = operands;
  return {
    kernel,
    bindings: [x, { buffer: exponents, offset: 0, length: EXPONENT_BINS, dtype: "uint32" }],
    scalars: { count: x.length },
  };
}
