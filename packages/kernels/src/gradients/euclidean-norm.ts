import type { Kernel, KernelView } from "@halfstep/device";
import { floatsOf } from "../amp/update-scale.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import {
  clipFactors,
  clipWgsl,
  keepSquareSum,
  squareSumOf,
  squareSums,
  squareSumsWgsl,
  sumSquaresWgsl,
} from "../square-sums.js";
import {
  gatherSize,
  maxNorm,
  type NormKernels,
  normEps,
  partialCount,
  power,
} from "./norm-partials.js";

const planes = { length: partialCount } as const;
const quadsOfPlane = partialCount / 4;

const forEachQuad = (statements: string): string => `
  for (var q = index; q * 4u < s.count; q += ${partialCount}u) {
    let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
    ${statements}
  }`;

const partialKernel = (adds: boolean): Kernel =>
  defineKernel({
    name: "gradient-norm-partials",
    variant: `2${adds ? " add" : ""}`,
    bindings: [
      { name: "x", access: "read" },
      { name: "scale", access: "read", unit: 1, dtypes: ["float32"] },
      {
        name: "partials",
        access: adds ? "readwrite" : "write",
        unit: 1,
        dtypes: ["float32"],
      },
    ],
    scalars: [{ name: "count", type: "u32" }, power],
    body: () => `${squareSumsWgsl}
${linearMain()}
  let inverse = at_scale(1u);
${sumSquaresWgsl(forEachQuad, "select(vec4f(), load_x(q) * inverse, inside)")}
  for (var i = 0u; i < ${squareSums}u; i++) {
    let own = i * ${partialCount}u + index;
    store_partials(own, ${adds ? "at_partials(own) + " : ""}total[i]);
  }
}
`,
    workgroups: () => linearWorkgroups(partialCount),
    reference([x, scale, partials]) {
      const values = x as KernelView;
      const kept = partials as KernelView;
      const inverse = scale?.[1] as number;
      let sum = adds ? squareSumOf(kept, { ...planes, count: 1 }) : 0;
      for (let i = 0; i < values.length; i++) sum += ((values[i] as number) * inverse) ** 2;
      kept.fill(0);
      keepSquareSum(kept, planes, sum);
    },
  });

const gatherKernel = defineKernel({
  name: "gradient-norm",
  variant: "2",
  bindings: [
    { name: "partials", access: "read", dtypes: ["float32"] },
    { name: "norm", access: "write", unit: 1, dtypes: ["uint32"] },
  ],
  scalars: [maxNorm, power],
  body: () => `${squareSumsWgsl}${clipWgsl}
var<workgroup> gathered: array<mat3x4f, ${gatherSize}>;
@compute @workgroup_size(${gatherSize}) fn main(@builtin(local_invocation_index) local: u32) {
  var own = mat3x4f();
  for (var q = local; q < ${quadsOfPlane}u; q += ${gatherSize}u) {
    own += mat3x4f(load_partials(q), load_partials(q + ${quadsOfPlane}u), load_partials(q + ${2 * quadsOfPlane}u));
  }
  gathered[local] = own;
  workgroupBarrier();
  if (local > 0u) { return; }
  for (var k = 1u; k < ${gatherSize}u; k++) { own += gathered[k]; }
  let clip = clip_of_squares(total_of(own), s.maxNorm, ${normEps});
  store_norm(0u, clip.norm);
  store_norm(1u, factor_bits(clip));
}
`,
  workgroups: () => [1, 1, 1],
  reference([partials, normBits], { maxNorm }) {
    const norm = floatsOf(normBits);
    const root = Math.sqrt(squareSumOf(partials as KernelView, planes));
    norm[0] = root;
    norm[1] = clipFactors(root, maxNorm as number, normEps).factor;
  },
});

/** The kernels of the 2-norm, which neither overflow nor underflow where the norm is a float32. */
export const euclideanNorm: NormKernels = {
  first: partialKernel(false),
  next: partialKernel(true),
  gather: gatherKernel,
};
