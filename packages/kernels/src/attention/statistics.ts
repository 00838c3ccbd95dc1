import type { Binding, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import {
  type HeadKernel,
  type HeadOperand,
  headBases,
  headScalars,
  setDense,
  tokenPlaces,
} from "./heads.js";
import { product } from "./reference.js";
import type { AttentionShape } from "./shape.js";
import { rowQuads, tokenOf } from "./tile.js";

/**
 * Computes the statistics of each query for both backward passes, float32 [entries, queries, 4]: its normalizers, Σ out ·
 * outGradient, which is the average gradient of its scores (Dao et al. 2022, appendix B.2), and 0.
 */
export function attentionStatistics<B>(
  operands: {
    readonly out: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly normalizers: Binding<B>;
    readonly statistics: Binding<B>;
  },
  { entries, queries, width }: Pick<AttentionShape, "entries" | "queries" | "width">,
): Launch<B> {
  const rows = entries * queries;
  requireLengths("attentionStatistics", operands, {
    out: rows * width,
    outGradient: rows * width,
    normalizers: rows * 2,
    statistics: rows * 4,
  });
  const { out, outGradient, normalizers, statistics } = operands;
  const kernel = width % 4 === 0 ? kernels.aligned : kernels.unaligned;
  return {
    kernel,
    bindings: [out, outGradient, normalizers, statistics],
    scalars: setDense(kernel.heads.operands, { entries, queries, width }),
  };
}

function statisticsKernel(isAligned: boolean): HeadKernel {
  const operands = ["out", "outGradient"].map(
    (name, binding): HeadOperand => ({
      ...{ name, binding, tokens: "queries", size: "width" },
      ...{ isResult: false, unit: isAligned ? 4 : 1 },
    }),
  );
  const kernel = defineKernel({
    name: "attentionStatistics",
    factors: 2,
    variant: isAligned ? "quads" : "",
    bindings: [
      { name: "out", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "normalizers", access: "read", unit: 2, dtypes: ["float32"] },
      { name: "statistics", access: "write", dtypes: ["float32"] },
    ],
    scalars: [
      { name: "entries", type: "u32" },
      { name: "queries", type: "u32" },
      { name: "width", type: "u32" },
      ...headScalars(operands),
    ],
    body: () => `${rowQuads("out", "s.width", isAligned)}${rowQuads("outGradient", "s.width", isAligned)}
${linearMain()}  if (index >= s.entries * s.queries) { return; }
  let entry = index / s.queries;
  let query = index - entry * s.queries;
${headBases(operands)}  let out_at = ${tokenOf("out", "query")};
  let outGradient_at = ${tokenOf("outGradient", "query")};
  let quads = (s.width + 3u) >> 2u;
  var sum = vec4f();
  for (var c = 0u; c < quads; c++) { sum = fma(quad_out(out_at, c), quad_outGradient(outGradient_at, c), sum); }
  store_statistics(index, vec4f(load_normalizers(index), (sum.x + sum.y) + (sum.z + sum.w), 0.0));
}
`,
    workgroups: ({ entries = 0, queries = 0 }) => linearWorkgroups(entries * queries),
    reference([out, outGradient, normalizers, statistics], scalars) {
      const [y, g, l, to] = [out, outGradient, normalizers, statistics] as [
        KernelView,
        KernelView,
        KernelView,
        KernelView,
      ];
      const { entries = 0, queries = 0, width = 0 } = scalars;
      const [ofOut, ofGradient] = operands.map((operand) => tokenPlaces(operand, scalars)) as [
        ReturnType<typeof tokenPlaces>,
        ReturnType<typeof tokenPlaces>,
      ];
      for (let entry = 0, row = 0; entry < entries; entry++)
        for (let query = 0; query < queries; query++, row++) {
          const average = product(y, ofOut(entry, query), g, ofGradient(entry, query), width);
          to.set([l[row * 2] as number, l[row * 2 + 1] as number, average, 0], row * 4);
        }
    },
  });
  const heads: HeadKernel["heads"] = { operands, results: "whole", storing: () => whole };
  const whole: HeadKernel = { ...kernel, heads };
  return whole;
}

const kernels = { aligned: statisticsKernel(true), unaligned: statisticsKernel(false) };
