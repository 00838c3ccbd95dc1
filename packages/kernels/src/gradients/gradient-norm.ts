import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { fill } from "../copies/fill.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";

/** Partial results, one for each invocation: enough to fill a GPU, few enough to gather in one workgroup. */
const partialCount = 16_384;
const gatherSize = 256;

/** Bytes of scratch that {@link gradientNorm} needs. */
export const gradientNormScratchBytes: number = partialCount * 4;

const largestFloat32 = 3.4028234663852886e38;
const exponent = "0x7f800000u";

/** How the magnitudes of elements are gathered into one number, and what the norm makes of it. */
interface Gathering {
  readonly name: string;
  /** The number that an empty set gives is 0 in all of them. WGSL of `total` and the quad `v`, or of two quads of totals. */
  readonly term: string;
  readonly joined: string;
  readonly root: string;
  /** Whether totals are handled as bits: their order is that of the magnitudes, with NaN above infinity. */
  readonly isBits: boolean;
  add(total: number, v: number, p: number): number;
  join(a: number, b: number): number;
  rootOf(total: number, p: number): number;
}

const sum = (a: number, b: number): number => a + b;
const largest = (a: number, b: number): number => (b > a || Number.isNaN(b) ? b : a);

const gatherings: readonly Gathering[] = [
  {
    name: "2",
    term: "total + v * v",
    joined: "bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b))",
    root: "sqrt(bitcast<f32>(total))",
    isBits: false,
    add: (total, v) => total + v * v,
    join: sum,
    rootOf: Math.sqrt,
  },
  {
    name: "inf",
    term: "max(total, bitcast<vec4u>(abs(v)))",
    joined: "max(a, b)",
    root: "bitcast<f32>(total)",
    isBits: true,
    add: (total, v) => largest(total, Math.abs(v)),
    join: largest,
    rootOf: (total) => total,
  },
  {
    name: "1",
    term: "total + abs(v)",
    joined: "bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b))",
    root: "bitcast<f32>(total)",
    isBits: false,
    add: (total, v) => total + Math.abs(v),
    join: sum,
    rootOf: (total) => total,
  },
  {
    name: "p",
    // The power of a number that is not finite, or of 0, is what WGSL leaves open.
    term: "total + select(select(pow(abs(v), vec4f(s.p)), v * v, (bitcast<vec4u>(v) & vec4u(0x7f800000u)) == vec4u(0x7f800000u)), vec4f(), v == vec4f())",
    joined: "bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b))",
    root: "select(pow(bitcast<f32>(total), 1.0 / s.p), 0.0, total == 0u)",
    isBits: false,
    add: (total, v, p) => total + Math.abs(v) ** p,
    join: sum,
    rootOf: (total, p) => total ** (1 / p),
  },
];

const power = { name: "p", type: "f32", runtime: true } as const;

const partialKernel = ({ name, term, isBits, joined, add }: Gathering, adds: boolean): Kernel => {
  const lanes = isBits ? "total" : "bitcast<vec4u>(total)";
  return defineKernel({
    name: "gradient-norm-partials",
    variant: `${name}${adds ? " add" : ""}`,
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
    scalars: [{ name: "count", type: "u32" }, power],
    body: () => `fn joined(a: vec4u, b: vec4u) -> vec4u { return ${joined}; }
${linearMain()}
  let inverse = at_scale(1u);
  var total = ${isBits ? "vec4u()" : "vec4f()"};
  let quads = (s.count + 3u) / 4u;
  for (var q = index; q < quads; q += ${partialCount}u) {
    let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
    let v = select(vec4f(), load_x(q) * inverse, inside);
    total = ${term};
  }
  let lanes = ${lanes};
  let own = joined(joined(lanes.xxxx, lanes.yyyy), joined(lanes.zzzz, lanes.wwww));
  store_partials(index, ${adds ? "joined(vec4u(at_partials(index)), own).x" : "own.x"});
}
`,
    workgroups: () => linearWorkgroups(partialCount),
    reference([x, scale, partialBits], { p }) {
      const values = x as KernelView;
      const partials = floatsOf(partialBits);
      const inverse = scale?.[1] as number;
      let total = adds ? (partials[0] as number) : 0;
      for (let i = 0; i < values.length; i++)
        total = add(total, (values[i] as number) * inverse, p as number);
      partials.fill(0);
      partials[0] = total;
    },
  });
};

const gatherKernel = ({ name, joined, root, join, rootOf }: Gathering): Kernel =>
  defineKernel({
    name: "gradient-norm",
    variant: name,
    bindings: [
      { name: "partials", access: "read", dtypes: ["uint32"] },
      { name: "norm", access: "write", unit: 1, dtypes: ["uint32"] },
    ],
    scalars: [{ name: "maxNorm", type: "f32", runtime: true }, power],
    body: () => `var<workgroup> gathered: array<vec4u, ${gatherSize}>;
fn joined(a: vec4u, b: vec4u) -> vec4u { return ${joined}; }
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
    let root = ${root};
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
    reference([partialBits, normBits], { maxNorm, p }) {
      const partials = floatsOf(partialBits);
      const norm = floatsOf(normBits);
      let total = 0;
      for (const partial of partials) total = join(total, partial);
      const root = rootOf(total, p as number);
      norm[0] = root;
      norm[1] = Math.min((maxNorm as number) / (root + 1e-6), 1);
    },
  });

const kernels = new Map(
  gatherings.map((gathering) => [
    gathering.name,
    {
      first: partialKernel(gathering, false),
      next: partialKernel(gathering, true),
      gather: gatherKernel(gathering),
    },
  ]),
);

const kernelsFor = (normType: number): NonNullable<ReturnType<typeof kernels.get>> => {
  const name = normType === Number.POSITIVE_INFINITY ? "inf" : `${normType}`;
  const found = kernels.get(name) ?? kernels.get("p");
  if (!found || !(normType > 0))
    throw new RangeError(`normType is ${normType}: it must be a positive number or Infinity`);
  return found;
};

/**
 * Writes float32 `[norm, factor]` of several gradients together into `norm`: their p-norm for a positive `normType`, or for
 * Infinity their largest magnitude, and `min(1, maxNorm / (norm + 1e-6))`, as torch.nn.utils.clip_grad_norm_ computes it. A
 * norm that is infinite gives factor 0, a NaN gives NaN. Gradients are multiplied by `1 / scale` first, element 1 of the
 * float32 `scale`. The order of the sum depends on nothing but the lengths.
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
  attributes: {
    readonly maxNorm: number;
    /** Default 2. */
    readonly normType?: number;
  },
): void {
  const { gradients, scale, norm } = operands;
  const { maxNorm, normType = 2 } = attributes;
  const { first, next, gather } = kernelsFor(normType);
  const buffer = operands.scratch ?? target.allocate(gradientNormScratchBytes);
  // Only the general kernels read it, and a uniform cannot hold an infinity.
  const p = Number.isFinite(normType) ? normType : 1;
  const partials: Binding<B> = { buffer, offset: 0, length: partialCount, dtype: "uint32" };
  if (gradients.length === 0) target.launch(fill({ ...partials, dtype: "float32" }, 0));
  for (const [i, x] of gradients.entries())
    target.launch({
      kernel: i === 0 ? first : next,
      bindings: [x, { buffer: scale, offset: 0, length: 2, dtype: "float32" }, partials],
      scalars: { count: x.length, p },
    });
  target.launch({
    kernel: gather,
    bindings: [partials, { buffer: norm, offset: 0, length: 2, dtype: "uint32" }],
    scalars: { maxNorm: Math.min(maxNorm, largestFloat32), p },
  });
}

function floatsOf(view: KernelView | undefined): Float32Array | Float64Array {
  const words = view as KernelView;
  return words instanceof Float64Array
    ? words
    : new Float32Array(words.buffer, words.byteOffset, words.length);
}
