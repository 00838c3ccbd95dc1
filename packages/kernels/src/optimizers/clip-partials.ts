import type { Binding, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { keepSquareSum, squareSums, squareSumsWgsl, sumSquaresWgsl } from "../square-sums.js";

const groupCount = 256;
const groupSize = 64;
const stride = groupCount * groupSize;

/** Partial sums of {@link clipPartials} for a range: `squareSums` planes with one sum for each workgroup. */
export const partialsEach: number = squareSums * groupCount;

/** The layout of the partial sums of a range, after those of `part` others. */
export const planesOfPart = (
  part: number,
): { readonly start: number; readonly length: number } => ({
  start: part * partialsEach,
  length: groupCount,
});

const forEachQuad = (statements: string): string => `
  for (var k = group.x * ${groupSize}u + local; k * 4u < s.count; k += ${stride}u) {
    let inside = vec4u(k * 4u) + vec4u(0u, 1u, 2u, 3u) < vec4u(s.count);
    ${statements}
  }`;

const kernel = defineKernel({
  name: "clip-partials",
  bindings: [
    { name: "x", access: "read" },
    { name: "scale", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "partials", access: "readwrite", unit: 1, dtypes: ["float32"] },
  ],
  scalars: [
    { name: "first", type: "u32" },
    { name: "count", type: "u32" },
    { name: "part", type: "u32" },
  ],
  body: () => `${squareSumsWgsl}
var<workgroup> gathered: array<vec3f, ${groupSize}>;
@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) local: u32) {
  let inverse = at_scale(1u);
${sumSquaresWgsl(forEachQuad, "select(vec4f(), load_x(s.first + k) * inverse, inside)")}
  gathered[local] = total;
  workgroupBarrier();
  if (local > 0u) { return; }
  var all = vec3f();
  for (var i = 0u; i < ${groupSize}u; i++) { all += gathered[i]; }
  for (var i = 0u; i < ${squareSums}u; i++) {
    store_partials(s.part * ${partialsEach}u + i * ${groupCount}u + group.x, all[i]);
  }
}
`,
  workgroups: () => [groupCount, 1, 1],
  reference([x, scale, partials], { first, count, part }) {
    const values = x as KernelView;
    const inverse = scale?.[1] as number;
    const start = (first as number) * 4;
    let total = 0;
    for (let i = start; i < start + (count as number); i++) {
      const v = (values[i] as number) * inverse;
      total += v * v;
    }
    const planes = planesOfPart(part as number);
    partials?.fill(0, planes.start, planes.start + partialsEach);
    if (partials) keepSquareSum(partials, planes, total);
  },
});

/**
 * The sums of squares of one range of gradients, multiplied by `1 / scale` (element 1 of `scale`), as {@link partialsEach}
 * float32 at place `part` of `partials`. The order of the sum depends on the length only.
 */
export function clipPartials<B>(
  operands: { readonly x: Binding<B>; readonly scale: B; readonly partials: Binding<B> },
  attributes: { readonly offset: number; readonly length: number; readonly part: number },
): Launch<B> {
  const { x, scale, partials } = operands;
  const { offset, length, part } = attributes;
  return {
    kernel,
    bindings: [x, { buffer: scale, offset: 0, length: 2, dtype: "float32" }, partials],
    scalars: { first: offset / 4, count: length, part },
  };
}
