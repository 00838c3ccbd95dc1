import type { Binding, DType, Kernel, KernelView, Launch } from "@halfstep/device";
import { flagBinding, flagOf, tellGradientsOf } from "../found-flag.js";
import { defineKernel } from "../kernel.js";
import { squareSumsWgsl } from "../square-sums.js";
import { infinityOf, magnitudesWgsl } from "../wgsl/magnitudes.js";
import {
  addPartialWgsl,
  addSquares,
  forEachQuadWgsl,
  quadMain,
  quadWorkgroups,
  rememberWorst,
  squaresBinding,
  squaresOf,
  stateBinding,
  tellWorst,
} from "./check-finite.js";

const stateWords = { access: "read", unit: 1, dtypes: ["float32"] } as const;

const makeKernel = (sums: boolean): Kernel =>
  defineKernel({
    name: "unscale",
    variant: sums ? "norm" : "",
    bindings: [
      { name: "x", access: "readwrite" },
      { name: "state", ...stateWords },
      flagBinding,
      ...(sums ? [squaresBinding] : []),
    ],
    scalars: [{ name: "count", type: "u32" }],
    // A range may end inside a quad, whose other elements belong to another tensor.
    body: (
      context,
    ) => `${magnitudesWgsl("x", context.bindings[0] as { dtype: DType })}${sums ? squareSumsWgsl : ""}
${quadMain(context)}
  let inverse = at_state(1u);
  var worst = vec4u();
  ${sums ? "var sums = mat3x4f();" : ""}
  ${forEachQuadWgsl(
    `${rememberWorst}
        let v = load_x(q);
        let g = v * inverse;
        ${sums ? "sums += squares_of(select(vec4f(), g, inside));" : ""}
        store_x(q, select(v, g, inside));`,
    context,
  )}
  ${tellWorst(context.bindings[0] as { dtype: DType })}
  ${sums ? `let total = total_of(sums);${addPartialWgsl}` : ""}
}
`,
    workgroups: ({ count }) => quadWorkgroups(count as number),
    reference([x, state, foundInf, squares]) {
      const values = x as KernelView;
      const inverse = state?.[1] as number;
      if (squares) addSquares(values, inverse, squares);
      tellGradientsOf(values, foundInf);
      for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) * inverse;
    },
  });

const plainKernel = makeKernel(false);
const summingKernel = makeKernel(true);

/**
 * Multiplies `x` in place by the reciprocal of the loss scale, in float32, and sets the float32 `foundInf[0]` to 1 where any
 * element was ±infinity or NaN. `state` is a scaler's float32 `[scale, 1 / scale, …]`. Exact for scales that are powers of
 * two, unless a result is subnormal. With `squares`, adds up the squares of the results as `checkFinite` does.
 */
export function unscale<B>(operands: {
  readonly x: Binding<B>;
  readonly state: B;
  readonly foundInf: B;
  readonly squares?: B | undefined;
}): Launch<B> {
  const { x, state, foundInf, squares } = operands;
  const bindings = [x, stateBinding(state), flagOf(foundInf)];
  return {
    kernel: squares === undefined ? plainKernel : summingKernel,
    bindings: squares === undefined ? bindings : [...bindings, squaresOf(squares)],
    scalars: { count: x.length },
  };
}

const rescaleKernel = defineKernel({
  name: "rescale",
  bindings: [
    { name: "x", access: "readwrite" },
    { name: "from", ...stateWords },
    { name: "to", ...stateWords },
    flagBinding,
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: (context) => `${magnitudesWgsl("x", context.bindings[0] as { dtype: DType })}
${quadMain(context)}
  let inverse = at_from(1u);
  let scale = at_to(0u);
  var worst = vec4u();
  ${forEachQuadWgsl(
    `${rememberWorst}
        let bad = magnitudes_x(q) >= vec4u(${infinityOf(context.bindings[0] as { dtype: DType })});
        let v = load_x(q);
        store_x(q, select(v, select((v * inverse) * scale, vec4f(), bad), inside));`,
    context,
  )}
  ${tellWorst(context.bindings[0] as { dtype: DType })}
}
`,
  workgroups: ({ count }) => quadWorkgroups(count as number),
  reference([x, from, to, foundInf]) {
    const values = x as KernelView;
    const isWide = values instanceof Float64Array;
    const inverse = from?.[1] as number;
    const scale = to?.[0] as number;
    tellGradientsOf(values, foundInf);
    for (let i = 0; i < values.length; i++) {
      const value = values[i] as number;
      const product = value * inverse;
      values[i] = Number.isFinite(value) ? (isWide ? product : Math.fround(product)) * scale : 0;
    }
  },
});

/**
 * Rescales gradients `x` from the loss scale of the state `from` to that of `to`: × 1 / scale of `from`, × scale of `to`,
 * each product rounded to float32. Sets the float32 `foundInf[0]` to 1 where any element was ±infinity or NaN; such elements
 * become 0.
 */
export function rescale<B>(operands: {
  readonly x: Binding<B>;
  readonly from: B;
  readonly to: B;
  readonly foundInf: B;
}): Launch<B> {
  const { x, from, to, foundInf } = operands;
  return {
    kernel: rescaleKernel,
    bindings: [x, stateBinding(from), stateBinding(to), flagOf(foundInf)],
    scalars: { count: x.length },
  };
}
