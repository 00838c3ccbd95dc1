import { castTo } from "../src/dispatch/cast.js";
import type { Tensor } from "../src/index.js";
import { attentionCases } from "./gradient-cases/attention.js";
import { type FamilyCases, on } from "./gradient-cases/builders.js";
import { elementwiseCases } from "./gradient-cases/elementwise.js";
import { functionCases } from "./gradient-cases/functions.js";
import { furtherCases } from "./gradient-cases/further.js";
import { indexingCases } from "./gradient-cases/indexing.js";
import { lossCases } from "./gradient-cases/losses.js";
import { matmulCases } from "./gradient-cases/matmul.js";
import { normCases } from "./gradient-cases/norm.js";
import { reduceCases } from "./gradient-cases/reduce.js";
import { rowCases } from "./gradient-cases/rows.js";
import { shapeCases } from "./gradient-cases/shape.js";
import { spatialCases } from "./gradient-cases/spatial.js";
import { statisticsCases } from "./gradient-cases/statistics.js";

/** Every differentiable op, by the name under which `ops/index.ts` exports it. Each file has one family. */
export const gradientCases: FamilyCases = {
  ...elementwiseCases,
  ...functionCases,
  ...reduceCases,
  ...statisticsCases,
  ...furtherCases,
  ...indexingCases,
  ...shapeCases,
  ...matmulCases,
  ...spatialCases,
  ...rowCases,
  ...normCases,
  ...lossCases,
  ...attentionCases,
  castTo: {
    second: "checked",
    cases: [
      on("there and back", [[2, 3]], ([x]) => castTo(castTo(x as Tensor, "float16"), "float32")),
    ],
  },
};
