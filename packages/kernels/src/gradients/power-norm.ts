import type { Kernel, KernelView } from "@halfstep/device";
import { floatsOf } from "../amp/update-scale.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { clipFactors, clipWgsl } from "../square-sums.js";
import {
  gatherSize,
  maxNorm,
  type NormKernels,
  normEps,
  partialCount,
  power,
} from "./norm-partials.js";

const exponent = "0x7f800000u";

/** How the magnitudes of elements are reduced to one number, and the norm computed from it. */
interface Gathering {
  readonly name: string;
  /** WGSL that reduces `total` and the quad `v`, or two quads of totals. The total of an empty set is 0 for all norms. */
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
    // WGSL does not define the power of 0 and of numbers that are not finite.
    term: "total + select(select(pow(abs(v), vec4f(s.p)), v * v, (bitcast<vec4u>(v) & vec4u(0x7f800000u)) == vec4u(0x7f800000u)), vec4f(), v == vec4f())",
    joined: "bitcast<vec4u>(bitcast<vec4f>(a) + bitcast<vec4f>(b))",
    root: "select(pow(bitcast<f32>(total), 1.0 / s.p), 0.0, total == 0u)",
    isBits: false,
    add: (total, v, p) => total + Math.abs(v) ** p,
    join: sum,
    rootOf: (total, p) => total ** (1 / p),
  },
];

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
    scalars: [maxNorm, power],
    body: () => `${clipWgsl}
var<workgroup> gathered: array<vec4u, ${gatherSize}>;
fn joined(a: vec4u, b: vec4u) -> vec4u { return ${joined}; }
@compute @workgroup_size(${gatherSize}) fn main(@builtin(local_invocation_index) local: u32) {
  var own = vec4u();
  for (var q = local; q < ${partialCount / 4}u; q += ${gatherSize}u) { own = joined(own, load_partials(q)); }
  gathered[local] = own;
  workgroupBarrier();
  if (local > 0u) { return; }
  for (var k = 1u; k < ${gatherSize}u; k++) { own = joined(own, gathered[k]); }
  let total = joined(joined(own.xxxx, own.yyyy), joined(own.zzzz, own.wwww)).x;
  var clip = clip_of_other(total);
  if (total < ${exponent}) { clip = clip_by(${root}, s.maxNorm, ${normEps}); }
  store_norm(0u, clip.norm);
  store_norm(1u, factor_bits(clip));
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
      norm[1] = clipFactors(root, maxNorm as number, normEps).factor;
    },
  });

const [largestMagnitude, sumOfMagnitudes, general] = gatherings.map(
  (gathering): NormKernels => ({
    first: partialKernel(gathering, false),
    next: partialKernel(gathering, true),
    gather: gatherKernel(gathering),
  }),
) as [NormKernels, NormKernels, NormKernels];

/** The kernels of a norm of this power, which is a positive number or Infinity. */
export const powerNorm = (normType: number): NormKernels =>
  normType === Number.POSITIVE_INFINITY
    ? largestMagnitude
    : normType === 1
      ? sumOfMagnitudes
      : general;
