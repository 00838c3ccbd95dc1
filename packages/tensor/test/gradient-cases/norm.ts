import type { Runtime, Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, type OpCases, on, type Triple } from "./builders.js";

const running = (runtime: Runtime): ops.RunningStatistics => ({
  mean: runtime.variable([0.2, -0.4, 1], [3]),
  variance: runtime.variable([0.5, 2, 1.3], [3]),
});

const parameters: readonly [name: string, weight: boolean, bias: boolean][] = [
  ["weight and bias", true, true],
  ["weight", true, false],
  ["bias", false, true],
  ["no parameters", false, false],
];

/** Layer norm of rows of 3, and of 2 × 2 matrices. */
const layerNorms: OpCases = {
  second: "checked",
  cases: (
    [
      [[4, 3], [3]],
      [
        [2, 2, 2],
        [2, 2],
      ],
    ] as const
  ).flatMap(([shape, normalized]) =>
    parameters.map(([name, weight, bias]) =>
      on(
        name,
        [shape, ...(weight ? [normalized] : []), ...(bias ? [normalized] : [])],
        ([x, ...rest]) =>
          ops.layerNorm(x as Tensor, normalized, weight ? rest.shift() : undefined, rest[0], {
            eps: 1e-3,
          }),
      ),
    ),
  ),
};

const rmsNorms: OpCases = {
  second: "checked",
  cases: [
    on("weight", [[4, 3], [3]], ([x, w]) => ops.rmsNorm(x as Tensor, 3, w, { eps: 1e-3 })),
    on("no weight", [[2, 4]], ([x]) => ops.rmsNorm(x as Tensor, 4)),
  ],
};

const groupNorms: OpCases = {
  second: "checked",
  cases: [
    on("weight and bias", [[2, 2, 2, 4], [4], [4]], ([x, w, b]) =>
      ops.groupNorm(x as Tensor, 2, w, b, { eps: 1e-3 }),
    ),
    on("no parameters", [[2, 3, 3]], ([x]) => ops.groupNorm(x as Tensor, 3)),
    on("one group", [[3, 4], [4], [4]], ([x, w, b]) => ops.groupNorm(x as Tensor, 1, w, b)),
  ],
};

/** Normalisation. */
export const normCases: FamilyCases = {
  layerNorm: layerNorms,
  rmsNorm: rmsNorms,
  groupNorm: groupNorms,
  batchNorm: {
    second: "checked",
    cases: [
      [4, 3],
      [2, 2, 2, 3],
    ].map((shape) =>
      on(
        "batch statistics",
        [shape, [3], [3]],
        (inputs) => ops.batchNorm(...(inputs as Triple), { eps: 1e-3 }).output,
      ),
    ),
  },
  batchNormInference: {
    second: "checked",
    cases: [
      [4, 3],
      [1, 2, 2, 3],
    ].map((shape) =>
      on("running statistics", [shape, [3], [3]], (inputs, runtime) =>
        ops.batchNormInference(...(inputs as Triple), running(runtime), { eps: 1e-3 }),
      ),
    ),
  },
};
