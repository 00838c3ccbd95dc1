import type { Binding, Kernel, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import { fill } from "./fill.js";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";

/** Partial results, one for each invocation: enough to fill a GPU, few enough to gather in one workgroup. */
const partialCount = 16_384;
const gatherSize = 256;

/** Bytes of scratch that {@link gradientNorm} needs. */
export const gradientNormScratchBytes: number = partialCount * 4;

const largestFloat32 = 3.4028234663852886e38;
const exponent = "0x7f800000u";

// The largest magnitude is compared as bits: their order is that of the magnitudes, with NaN above infinity.
const partialKernel = (isMax: boolean, adds: boolean): Kernel => {
  const term = isMax ? "max(total, bitcast<vec4u>(abs(v)))" : "total + v * v";
  const zero = isMax ? "vec4u()" : "vec4f()";
  const lane = isMax
    ? "max(max(total.x, total.y), max(total.z, total.w))"
    : "bitcast<u32>((total.x + total.y) + (total.z + total.w))";
  const previous = "at_partials(index)";
  const joined = isMax
    ? `max(${previous}, ${lane})`
    : `bitcast<u32>(bitcast<f32>(${previous}) + bitcast<f32>(${lane}))`;
  return defineKernel({
    name: "gradient-norm-partials",
    variant: `${isMax ? "inf" : "2"}${adds ? " add" : ""}`,
    bindings: [
      { name: "x", access: "read" },
      { name: "scale", access: "read", unit: 1, dtypes: ["float32"] },
      {
        name: "partials",
        access: adds ? "readwrite" : "write",
        unit: 1,
        dtypes: ["uint32"],
      },
    ],
    scalars: [{ name: "count", type: "u32" }],
    body: () => `${linearMain()}
  let inverse = at_scale(1u);
  var total = ${zero};
  let quads = (s.count + 3u) / 4u;
  for (var q = index; q < quads; q += ${partialCount}u) {
    let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
    let v = select(vec4f(), load_x(q) * inverse, inside);
    total = ${term};
  }
  store_partials(index, ${adds ? joined : lane});
}
`,
    workgroups: () => linearWorkgroups(partialCount),
    reference([x, scale, partialBits]) {
      const values = x as KernelView;
      const partials = floatsOf(partialBits);
      const inverse = scale?.[1] as number;
      let total = adds ? (partials[0] as number) : 0;
      for (let i = 0; i < values.length; i++) {
        const v = (values[i] as number) * inverse;
        total = isMax ? largest(total, Math.abs(v)) : total + v * v;
      }
      partials.fill(0);
      partials[0] = total;
    },
  });
};

const gatherKernel = (isMax: boolean): Kernel =>
  defineKernel({
    name: "gradient-norm",
    variant: isMax ? "inf" : "2",
    bindings: [
      { name: "partials", access: "read", dtypes: ["uint32"] },
      { name: "norm", access: "write", unit: 1, dtypes: ["uint32"] },
    ],
    scalars: [{ name: "maxNorm", type: "f32", runtime: true }],
    body: () => `var<workgroup> gathered: array<vec4u, ${gatherSize}>;
fn joined(a: vec4u, b: vec4u) -> vec4u {
  return ${isMax ? "max(a, b)" : "bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b))"};
}
@compute @workgroup_size(${gatherSize}) fn main(@builtin(local_invocation_index) local: u32) {
  var own = vec4u();
  for (var q = local; q < ${partialCount / 4}u; q += ${gatherSize}u) { own = joined(own, load_partials(q)); }
  gathered[local] = own;
  workgroupBarrier();
  if (local > 0u) { return; }
  for (var k = 1u; k < ${gatherSize}u; k++) { own = joined(own, gathered[k]); }
  let total = joined(joined(own.xxxx, own.yyyy), joined(own.zzzz, own.wwww)).x;
  var norm = total;
  var factor = total;
  if (total < ${exponent}) {
    let root = ${isMax ? "bitcast<f32>(total)" : "sqrt(bitcast<f32>(total))"};
    norm = bitcast<u32>(root);
    factor = bitcast<u32>(min(s.maxNorm / (root + 1e-6), 1.0));
  } else if (total == ${exponent}) {
    factor = 0u;
  }
  store_norm(0u, norm);
  store_norm(1u, factor);
}
`,
    workgroups: () => [1, 1, 1],
    reference([partialBits, normBits], { maxNorm }) {
      const partials = floatsOf(partialBits);
      const norm = floatsOf(normBits);
      let total = 0;
      for (const partial of partials) total = isMax ? largest(total, partial) : total + partial;
      const root = isMax ? total : Math.sqrt(total);
      norm[0] = root;
      norm[1] = Math.min((maxNorm as number) / (root + 1e-6), 1);
    },
  });

const clipKernel = defineKernel({
  name: "clip-gradients",
  bindings: [
    { name: "x", access: "readwrite" },
    { name: "norm", access: "read", unit: 1, dtypes: ["float32"] },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: () => `${linearMain()}
  if (index * 4u >= s.count) { return; }
  let factor = at_norm(1u);
  if (bitcast<u32>(factor) == 0x3f800000u) { return; }
  let v = load_x(index);
  store_x(index, select(v * factor, v, v == vec4f()));
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x, norm]) {
    const values = x as KernelView;
    const factor = norm?.[1] as number;
    if (factor === 1) return;
    for (let i = 0; i < values.length; i++)
      if (values[i] !== 0) values[i] = (values[i] as number) * factor;
  },
});

const kernels = [false, true].map((isMax) => ({
  first: partialKernel(isMax, false),
  next: partialKernel(isMax, true),
  gather: gatherKernel(isMax),
}));

/**
 * Writes float32 `[norm, factor]` of several gradients together into `norm`: their 2-norm or largest magnitude, and
 * `min(1, maxNorm / (norm + 1e-6))`, as torch.nn.utils.clip_grad_norm_ computes it. A norm that is infinite gives factor
 * 0, a NaN gives NaN. Gradients are multiplied by `1 / scale` first, element 1 of the float32 `scale`. The order of the
 * sum depends on nothing but the lengths.
 */
export function gradientNorm<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly gradients: readonly Binding<B>[];
    readonly scale: B;
    readonly norm: B;
    /** {@link gradientNormScratchBytes} bytes; allocated from the target where absent. */
    readonly scratch?: B;
  },
  attributes: { readonly maxNorm: number; readonly normType?: 2 | typeof Infinity },
): void {
  const { gradients, scale, norm } = operands;
  const buffer = operands.scratch ?? target.allocate(gradientNormScratchBytes);
  const { first, next, gather } = kernels[
    attributes.normType === Infinity ? 1 : 0
  ] as (typeof kernels)[number];
  const partials: Binding<B> = { buffer, offset: 0, length: partialCount, dtype: "uint32" };
  if (gradients.length === 0) target.launch(fill({ ...partials, dtype: "float32" }, 0));
  for (const [i, x] of gradients.entries())
    target.launch({
      kernel: i === 0 ? first : next,
      bindings: [x, { buffer: scale, offset: 0, length: 2, dtype: "float32" }, partials],
      scalars: { count: x.length },
    });
  target.launch({
    kernel: gather,
    bindings: [partials, { buffer: norm, offset: 0, length: 2, dtype: "uint32" }],
    scalars: { maxNorm: Math.min(attributes.maxNorm, largestFloat32) },
  });
}

/**
 * Multiplies `x` in place by the factor that {@link gradientNorm} left; a factor of 1 changes no bit. Zeros stay zeros
 * even where it is NaN: nothing else would ever clear the gaps between parameters of a flat buffer.
 */
export function clipGradients<B>(operands: {
  readonly x: Binding<B>;
  readonly norm: B;
}): Launch<B> {
  const { x, norm } = operands;
  return {
    kernel: clipKernel,
    bindings: [x, { buffer: norm, offset: 0, length: 2, dtype: "float32" }],
    scalars: { count: x.length },
  };
}

const largest = (a: number, b: number): number => (b > a || Number.isNaN(b) ? b : a);

function floatsOf(view: KernelView | undefined): Float32Array | Float64Array {
  const words = view as KernelView;
  return words instanceof Float64Array
    ? words
    : new Float32Array(words.buffer, words.byteOffset, words.length);
}
