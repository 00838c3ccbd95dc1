import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { rowQuads } from "./tile.js";

/**
 * What both backward passes need of each query, float32 [rows, 2]: the logarithm of its sum of exponentials, and
 * Σ out · outGradient, which is the average gradient of its scores (Dao et al. 2022, appendix B.2).
 */
export function attentionStatistics<B>(
  operands: {
    readonly out: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly logSumExp: Binding<B>;
    readonly statistics: Binding<B>;
  },
  { rows, width }: { readonly rows: number; readonly width: number },
): Launch<B> {
  requireLengths("attentionStatistics", operands, {
    out: rows * width,
    outGradient: rows * width,
    logSumExp: rows,
    statistics: rows * 2,
  });
  const { out, outGradient, logSumExp, statistics } = operands;
  return {
    kernel: width % 4 === 0 ? kernels.aligned : kernels.unaligned,
    bindings: [out, outGradient, logSumExp, statistics],
    scalars: { rows, width },
  };
}

const statisticsKernel = (isAligned: boolean): Kernel =>
  defineKernel({
    name: "attentionStatistics",
    factors: 2,
    variant: isAligned ? "quads" : "",
    bindings: [
      { name: "out", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "logSumExp", access: "read", unit: 1, dtypes: ["float32"] },
      { name: "statistics", access: "write", unit: 2, dtypes: ["float32"] },
    ],
    scalars: [
      { name: "rows", type: "u32" },
      { name: "width", type: "u32" },
    ],
    body: () => `${rowQuads("out", "s.width", isAligned)}${rowQuads("outGradient", "s.width", isAligned)}
${linearMain()}  if (index >= s.rows) { return; }
  let quads = (s.width + 3u) >> 2u;
  var sum = vec4f();
  for (var c = 0u; c < quads; c++) { sum = fma(quad_out(index, c), quad_outGradient(index, c), sum); }
  store_statistics(index, vec2f(load_logSumExp(index), (sum.x + sum.y) + (sum.z + sum.w)));
}
`,
    workgroups: ({ rows }) => linearWorkgroups(rows as number),
    reference([out, outGradient, logSumExp, statistics], { rows = 0, width = 0 }) {
      const [y, g, l, to] = [out, outGradient, logSumExp, statistics] as [
        KernelView,
        KernelView,
        KernelView,
        KernelView,
      ];
      for (let row = 0; row < rows; row++) {
        to[row * 2] = l[row] as number;
        let sum = 0;
        for (let i = row * width; i < (row + 1) * width; i++)
          sum += (y[i] as number) * (g[i] as number);
        to[row * 2 + 1] = sum;
      }
    },
  });

const kernels = { aligned: statisticsKernel(true), unaligned: statisticsKernel(false) };
