import type { Binding, KernelView, LaunchTarget } from "@halfstep/device";
import { requireLengths } from "../operands.js";
import { keepingNan } from "../wgsl/transcendental.js";
import { type AttentionOperands, requireAttention } from "./operands.js";
import { intoRows } from "./padded.js";
import { definePass, type HeadView, launchOf } from "./pass.js";
import { addRow, product, setRows } from "./reference.js";
import type { AttentionAttributes } from "./shape.js";
import { each, overLanes, type ResultTile, scaleRow } from "./tile.js";
import { keptOf, scaledScores, seenColumns } from "./visibility.js";

/**
 * out = softmax(query keyᵀ · scale + mask) value [entries, queries, width], and the logarithm of each row's sum of exponentials,
 * float32 [entries, queries]. Scores and probabilities exist in registers only, a tile at a time, as in Dao et al. 2022
 * (FlashAttention): the sum is about the largest score so far, and is rescaled when a larger one comes. A query that sees nothing
 * gets zeros.
 */
export function attention<B>(
  target: LaunchTarget<B>,
  operands: AttentionOperands<B> & { readonly out: Binding<B>; readonly logSumExp: Binding<B> },
  attributes: AttentionAttributes,
): void {
  const { entries, queries, width } = attributes;
  requireAttention("attention", operands, attributes);
  const { out, logSumExp } = operands;
  const lengths = { out: entries * queries * width, logSumExp: entries * queries };
  requireLengths("attention", { out, logSumExp }, lengths);
  intoRows(target, out, width, (rows) =>
    launchOf(forwardKernel, operands, [rows, logSumExp], attributes),
  );
}

const forwardKernel = definePass((parts) => {
  const result: ResultTile = {
    name: "out",
    quads: parts.widthQuads,
    size: "s.width",
    weights: "score",
    values: "value",
    out: "out",
    finished: (sum, r) => `${sum} * divisor${r}`,
  };
  return {
    name: "attention",
    rows: "queries",
    isBackward: false,
    results: [result],
    stores: [{ name: "logSumExp", access: "write", unit: 1, dtypes: ["float32"] }],
    statements: (tile) => ({
      functions: keepingNan("row_log", "log(x)"),
      registers: each(tile.rows, (r) => `  var top${r} = -3.4e38; var total${r} = 0.0;\n`),
      weigh: (
        r,
      ) => `      let x = shown(${scaledScores(parts, r)}, ${seenColumns(parts, "queries", r)});
      var most = max(max(x.x, x.y), max(x.z, x.w));
      ${overLanes(tile, "most", "max")}
      most = max(top${r}, most);
      let shrink = row_exp(vec4f(top${r} - most)).x;
      top${r} = most;
      let p = row_exp(x - vec4f(most));
      total${r} = total${r} * shrink + ((p.x + p.y) + (p.z + p.w));
      score${r} = ${keptOf(parts, r, "p")};
      ${scaleRow(tile, result, r, "shrink")}
`,
      beforeStores: each(
        tile.rows,
        (r) => `  ${overLanes(tile, `total${r}`, "sum")}
  let divisor${r} = 1.0 / select(total${r}, 1.0, total${r} == 0.0)${parts.isDropping ? " * s.factor" : ""};
`,
      ),
      afterStores: `  var logs = array<f32, ${tile.rows}>(${Array.from(
        { length: tile.rows },
        (_, r) => `select(top${r} + row_log(vec4f(total${r})).x, 0.0, total${r} == 0.0)`,
      ).join(", ")});
  for (var r = lane; r < min(${tile.rows}u, s.queries - row); r += ${tile.lanes}u) { store_logSumExp(query_start + row + r, logs[r]); }
`,
    }),
    reference({ query: q, key: k, value: v, results, stores, limit, shown, kept, ...numbers }) {
      const { entries, queries, keys, size, width, scale } = numbers;
      const logSumExp = stores[0] as KernelView;
      const scores = new Float64Array(keys);
      const sums = new Float64Array(entries * queries * width);
      for (let entry = 0; entry < entries; entry++)
        for (let query = 0; query < queries; query++) {
          const row = entry * queries + query;
          const seen = limit(entry, query);
          const start = q.at(entry, query);
          let top = -3.4e38;
          for (let key = 0; key < seen; key++) {
            const score = product(q.view, start, k.view, k.at(entry, key), size) * scale;
            scores[key] = shown(score, entry, query, key);
            top = Math.max(top, scores[key] as number);
          }
          let total = 0;
          for (let key = 0; key < seen; key++) {
            const p = Math.exp((scores[key] as number) - top);
            total += p;
            addRow(sums, row, v.view, v.at(entry, key), width, kept(p, entry, query, key));
          }
          for (let i = row * width; i < (row + 1) * width; i++)
            sums[i] = (sums[i] as number) / (total === 0 ? 1 : total);
          logSumExp[row] = total === 0 ? 0 : top + Math.log(total);
        }
      setRows(results[0] as HeadView, sums, { entries, tokens: queries, size: width });
    },
  };
});
