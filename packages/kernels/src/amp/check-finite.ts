import type {
  Binding,
  DType,
  Kernel,
  KernelBinding,
  KernelView,
  Launch,
  ProgramContext,
  Workgroups,
} from "@halfstep/device";
import type { SquareSum } from "@halfstep/grad-scaler";
import { isCpu } from "../cpu-adapter.js";
import { flagBinding, flagOf, tellGradients, tellGradientsOf } from "../found-flag.js";
import { defineKernel } from "../kernel.js";
import {
  keepSquareSum,
  squareSumOf,
  squareSums,
  squareSumsWgsl,
  sumSquaresWgsl,
} from "../square-sums.js";
import { infinityOf, largestOf, magnitudesWgsl } from "../wgsl/magnitudes.js";

const groupSize = 64;

/** Consecutive quads that one invocation checks, so that several loads are in flight at once. */
const quadsEach = 8;
const blockSize = groupSize * quadsEach;

/** Largest number of workgroups: enough to fill a GPU, and few enough to add up the findings of their invocations. */
const maxGroups = 512;

/** Partial sums that {@link checkFinite} and `unscale` make at most: one for each invocation. */
const maxPartials = maxGroups * groupSize;

/** Float32 words of those partial sums: a plane for each of the `squareSums`. */
export const squaresLength: number = squareSums * maxPartials;

/** The layout of the planes. */
export const squaresPlanes: { readonly length: number } = { length: maxPartials };

const groupsOf = (count: number): number =>
  Math.min(Math.ceil(Math.ceil(count / 4) / blockSize), maxGroups);

/** The number of partial sums of a gradient of this length. */
export const partialsOf = (count: number): number => groupsOf(count) * groupSize;

type OnHardware = Pick<ProgramContext, "hardware">;

/** Invocations of a workgroup: on CPU adapters, where every subgroup takes time to start, one subgroup. */
const invocationsOf = (context: OnHardware): number => (isCpu(context) ? 8 : groupSize);

/**
 * WGSL: `statements` for every quad `q` of `s.count` elements, with the elements that lie `inside`. CPU adapters get a loop of unknown
 * length: an unrolled loop is slower there and takes four times as long to compile.
 */
export const forEachQuadWgsl = (statements: string, context: OnHardware): string =>
  invocationsOf(context) < groupSize
    ? `
  for (var block = group.x * ${blockSize}u; block * 4u < s.count; block += groups.x * ${blockSize}u) {
    let stop = min(block + ${blockSize}u, (s.count + 3u) / 4u);
    for (var q = block + local; q < stop; q += ${invocationsOf(context)}u) {
      let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
      ${statements}
    }
  }
`
    : `
  for (var block = group.x * ${blockSize}u; block * 4u < s.count; block += groups.x * ${blockSize}u) {
    for (var k = 0u; k < ${quadsEach}u; k++) {
      let q = block + k * ${groupSize}u + local;
      let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
      if (inside.x) { ${statements} }
    }
  }
`;

/** Workgroups for {@link forEachQuadWgsl}. */
export const quadWorkgroups = (count: number): Workgroups => [groupsOf(count), 1, 1];

/** The head of the entry point around {@link forEachQuadWgsl}. */
export const quadMain = (
  context: OnHardware,
): string => `@compute @workgroup_size(${invocationsOf(context)})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
`;

/** WGSL that adds the `total` of an invocation, three sums, to its partial sums in binding `squares`. */
export const addPartialWgsl: string = `
  for (var i = 0u; i < ${squareSums}u; i++) {
    let own = i * ${maxPartials}u + group.x * ${groupSize}u + local;
    store_squares(own, at_squares(own) + total[i]);
  }
`;

/** The binding of partial sums of squares. */
export const squaresBinding: KernelBinding = {
  name: "squares",
  access: "readwrite",
  unit: 1,
  dtypes: ["float32"],
};

/** WGSL: a statement for {@link forEachQuadWgsl} that keeps the magnitude bits furthest from zero of binding `x` in the vec4u `worst`. */
export const rememberWorst = "worst = max(worst, select(vec4u(), magnitudes_x(q), inside));";

/** WGSL that sets `foundInf` by the bits in `worst`, for elements of this storage. */
export const tellWorst = (stored: { readonly dtype: DType }): string =>
  `let most = ${largestOf("worst")};${tellGradients("foundInf", "most", infinityOf(stored))}`;

const sumWgsl = (context: OnHardware): string =>
  sumSquaresWgsl(
    (statements) => forEachQuadWgsl(statements, context),
    "select(vec4f(), load_x(q) * inverse, inside)",
    { before: rememberWorst, isZero: "all(worst == vec4u())" },
  );

const makeKernel = (sums: boolean): Kernel =>
  defineKernel({
    name: "check-finite",
    variant: sums ? "norm" : "",
    bindings: [
      { name: "x", access: "read" },
      flagBinding,
      ...(sums
        ? [{ name: "state", access: "read", unit: 1, dtypes: ["float32"] } as const, squaresBinding]
        : []),
    ],
    scalars: [{ name: "count", type: "u32" }],
    body: (
      context,
    ) => `${magnitudesWgsl("x", context.bindings[0] as { dtype: DType })}${sums ? squareSumsWgsl : ""}
${quadMain(context)}
  var worst = vec4u();
  ${sums ? `let inverse = at_state(1u);${sumWgsl(context)}` : forEachQuadWgsl(rememberWorst, context)}
  ${tellWorst(context.bindings[0] as { dtype: DType })}
  ${sums ? addPartialWgsl : ""}
}
`,
    workgroups: ({ count }) => quadWorkgroups(count as number),
    reference([x, foundInf, state, squares]) {
      const values = x as KernelView;
      tellGradientsOf(values, foundInf);
      if (squares) addSquares(values, state?.[1] as number, squares);
    },
  });

const plainKernel = makeKernel(false);
const summingKernel = makeKernel(true);

/** Whether a kernel only checks its first binding for infinities and NaN, for the flag that is its second. */
export const isFiniteCheck = (kernel: Kernel): boolean => kernel === plainKernel;

/** Adds Σ (value × inverse)² to the first partial sum. */
export function addSquares(values: KernelView, inverse: number, squares: KernelView): void {
  const isWide = values instanceof Float64Array;
  let sum = squareSumOf(squares, { ...squaresPlanes, count: 1 });
  for (let i = 0; i < values.length; i++) {
    const product = (values[i] as number) * inverse;
    const value = isWide ? product : Math.fround(product);
    sum += value * value;
  }
  keepSquareSum(squares, squaresPlanes, sum);
}

/**
 * Sets the float32 `foundInf[0]` to 1 where any element of `x` is ±infinity or NaN, tested on bits, and leaves it otherwise. The second of
 * its two words records whether all elements checked so far are 0, for `updateScale`. Exact for every length, index and storage of `x`.
 * With `sum`, adds up the squares of the elements, each multiplied by 1 / scale, in an order that depends on the length only.
 */
export function checkFinite<B>(
  operands: { readonly x: Binding<B>; readonly foundInf: B },
  sum?: SquareSum<B>,
): Launch<B> {
  const { x, foundInf } = operands;
  const flag = flagOf(foundInf);
  return {
    kernel: sum ? summingKernel : plainKernel,
    bindings: sum ? [x, flag, stateBinding(sum.state), squaresOf(sum.squares)] : [x, flag],
    scalars: { count: x.length },
  };
}

/** A scaler's float32 `[scale, 1 / scale]`. */
export const stateBinding = <B>(buffer: B): Binding<B> => ({
  buffer,
  offset: 0,
  length: 2,
  dtype: "float32",
});

/** The partial sums that launches add to. */
export const squaresOf = <B>(buffer: B): Binding<B> => ({
  buffer,
  offset: 0,
  length: squaresLength,
  dtype: "float32",
});
