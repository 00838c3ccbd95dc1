import type { Runtime } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import { type FamilyCases, on, type Triple } from "./builders.js";

const running = (runtime: Runtime): ops.RunningStatistics => ({
  mean: runtime.variable([0.2, -0.4, 1], [3]),
  variance: runtime.variable([0.5, 2, 1.3], [3]),
});

/** Normalisation. */
export const normCases: FamilyCases = {
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
