import type { Binding, KernelView, LaunchTarget } from "@halfstep/device";
import { requireLengths, requireTarget } from "../operands.js";
import { keepingNan } from "../wgsl/transcendental.js";
import { softmaxStatements } from "./matrix-softmax.js";
import { type AttentionOperands, requireAttention } from "./operands.js";
import { intoRows } from "./padded.js";
import { definePass, type HeadView, launchOf } from "./pass.js";
import { addRow, product, setRows } from "./reference.js";
import type { AttentionAttributes } from "./shape.js";
import { each, overLanes, type ResultTile, scaleRow } from "./tile.js";
import { keptOf, scaledScores, seenColumns } from "./visibility.js";

/**
 * out = softmax(query keyᵀ · scale + mask) value [entries, queries, width], and the normalizers of each row, float32 [entries, queries,
 * 2]: its largest score, and the logarithm of the sum of exponentials relative to it. A single number would lose the logarithm where a
 * mask adds a large number to all scores. Scores and probabilities exist in registers only, a tile at a time, as in Dao et al. 2022
 * (FlashAttention): the sum is relative to the largest score so far, and is rescaled at a larger one. A query without visible keys gets
 * zeros.
 */
export function attention<B>(
  target: LaunchTarget<B>,
  operands: AttentionOperands<B> & { readonly out: Binding<B>; readonly normalizers: Binding<B> },
  attributes: AttentionAttributes,
): void {
  requireTarget("attention", target);
  const { entries, queries, width } = attributes;
  requireAttention("attention", operands, attributes);
  const { out, normalizers } = operands;
  const lengths = { out: entries * queries * width, normalizers: entries * queries * 2 };
  requireLengths("attention", { out, normalizers }, lengths);
  intoRows(target, out, width, (rows) =>
    launchOf(forwardKernel, operands, [rows, normalizers], attributes),
  );
}

const functions = keepingNan("row_log", "log(x)");

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
    stores: [{ name: "normalizers", access: "write", unit: 2, dtypes: ["float32"] }],
    blockStatements: (block) => ({ functions, ...softmaxStatements(parts, block, result) }),
    statements: (tile) => ({
      functions,
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
      afterStores: `  var normalizers = array<vec2f, ${tile.rows}>(${Array.from(
        { length: tile.rows },
        (_, r) => `select(vec2f(top${r}, row_log(vec4f(total${r})).x), vec2f(), total${r} == 0.0)`,
      ).join(", ")});
  for (var r = lane; r < min(${tile.rows}u, s.queries - row); r += ${tile.lanes}u) { store_normalizers(query_start + row + r, normalizers[r]); }
`,
    }),
    reference({
      query: q,
      key: k,
      value: v,
      results,
      stores,
      first,
      limit,
      shown,
      kept,
      ...numbers
    }) {
      const { entries, queries, keys, size, width, scale } = numbers;
      const normalizers = stores[0] as KernelView;
      const scores = new Float64Array(keys);
      const sums = new Float64Array(entries * queries * width);
      for (let entry = 0; entry < entries; entry++)
        for (let query = 0; query < queries; query++) {
          const row = entry * queries + query;
          const [begin, seen] = [first(query), limit(entry, query)];
          const start = q.at(entry, query);
          let top = -3.4e38;
          for (let key = begin; key < seen; key++) {
            const score = product(q.view, start, k.view, k.at(entry, key), size) * scale;
            scores[key] = shown(score, entry, query, key);
            // Skips NaN, as `max` of WGSL does; the NaN reaches the sum.
            if ((scores[key] as number) > top) top = scores[key] as number;
          }
          let total = 0;
          for (let key = begin; key < seen; key++) {
            const p = Math.exp((scores[key] as number) - top);
            total += p;
            addRow(sums, row, v.view, v.at(entry, key), width, kept(p, entry, query, key));
          }
          for (let i = row * width; i < (row + 1) * width; i++)
            sums[i] = (sums[i] as number) / (total === 0 ? 1 : total);
          normalizers[row * 2] = total === 0 ? 0 : top;
          normalizers[row * 2 + 1] = total === 0 ? 0 : Math.log(total);
        }
      setRows(results[0] as HeadView, sums, { entries, tokens: queries, size: width });
    },
  };
});
