import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { type AttentionOperands, type Numbers, product, requireAttention } from "./forward.js";
import { intoRows, paddedWidth } from "./padded.js";
import {
  type AttentionAttributes,
  attentionParts,
  byParts,
  maskBindings,
  operationsOf,
  scalarsOf,
  scalarValues,
  variantOf,
} from "./shape.js";
import {
  accumulate,
  attentionTile,
  each,
  ofRow,
  type ResultTile,
  resultTile,
  rowPositions,
  rowQuads,
  rowRegisters,
  scoreTile,
  storeResult,
  tileMain,
  tileWorkgroups,
} from "./tile.js";
import {
  keptOf,
  maskBinding,
  scaledScores,
  seenColumns,
  tileVisibility,
  visibilityFunctions,
  visibilityOf,
} from "./visibility.js";

/** What the backward passes read besides the operands of the forward pass. */
export interface AttentionGradientOperands<B> extends AttentionOperands<B> {
  /** [entries, queries, width] */
  readonly outGradient: Binding<B>;
  /** Of {@link attentionStatistics}: float32 [entries, queries, 2]. */
  readonly statistics: Binding<B>;
}

/**
 * queryGradient = Σ scoreGradient · key · scale, where scoreGradient = p · (outGradient valueᵀ − Σ out · outGradient), with the
 * probabilities p computed again, a tile at a time.
 */
export function attentionQueryGradient<B>(
  target: LaunchTarget<B>,
  operands: AttentionGradientOperands<B> & { readonly queryGradient: Binding<B> },
  attributes: AttentionAttributes,
): void {
  requireGradient("attentionQueryGradient", operands, attributes);
  const { query, key, value, mask, outGradient, statistics, queryGradient } = operands;
  requireLengths("attentionQueryGradient", { queryGradient }, { queryGradient: query.length });
  intoRows(target, queryGradient, attributes.size, (out) => ({
    kernel: queryKernel(attentionParts(attributes)),
    bindings: [query, key, value, ...maskBindings(mask), outGradient, statistics, out],
    scalars: scalarValues(attributes),
  }));
}

/** Throws unless the operands that both backward passes share are as the attributes say. */
export function requireGradient<B>(
  op: string,
  operands: AttentionGradientOperands<B>,
  attributes: AttentionAttributes,
): void {
  requireAttention(op, operands, attributes);
  const { entries, queries, width } = attributes;
  const { outGradient, statistics } = operands;
  const rows = entries * queries;
  const lengths = { outGradient: rows * width, statistics: rows * 2 };
  requireLengths(op, { outGradient, statistics }, lengths);
}

const queryKernel = byParts((parts): Kernel => {
  const { sizeQuads, isSizeAligned, isWidthAligned, isDropping } = parts;
  const result: ResultTile = { name: "gradient", quads: sizeQuads, size: "s.size" };
  return defineKernel({
    name: "attentionQueryGradient",
    variant: variantOf(parts),
    bindings: [
      { name: "query", access: "read" },
      { name: "key", access: "read" },
      { name: "value", access: "read" },
      ...maskBinding(parts),
      { name: "outGradient", access: "read" },
      { name: "statistics", access: "read", unit: 2, dtypes: ["float32"] },
      { name: "queryGradient", access: "write" },
    ],
    scalars: scalarsOf(parts),
    subgroups: ({ subgroupSize }) => subgroupSize > 0,
    body(context) {
      const tile = attentionTile(context, 2, [sizeQuads]);
      const { lanes, rows } = tile;
      return `${rowQuads("query", "s.size", isSizeAligned)}${rowQuads("key", "s.size", isSizeAligned)}${rowQuads(
        "value",
        "s.width",
        isWidthAligned,
      )}${rowQuads("outGradient", "s.width", isWidthAligned)}${visibilityFunctions(parts)}
${tileMain(tile, "s.queries")}
  let query_start = entry * s.queries;
  let key_start = entry * s.keys;
  let seen = seen_keys(entry);
  let end = select(seen, min(seen, row + ${rows}u), s.causal != 0u);
${rowPositions(tile, "query_start", "s.queries")}${rowRegisters(
  tile,
  "statistics",
  (part) => `load_statistics(query_start + min(row + ${part}, s.queries - 1u))`,
)}${resultTile(tile, result)}
  for (var first_column = 0u; first_column < end; first_column += ${4 * lanes}u) {
    let column = first_column + lane * 4u;
${each(4, (u) => `    let column${u} = key_start + min(column + ${u}u, seen - 1u);\n`)}${scoreTile(tile, "score", "query", "key", "s.size")}${scoreTile(tile, "change", "outGradient", "value", "s.width")}${tileVisibility(parts, "queries", rows)}${each(
  rows,
  (r) => `    {
      let own = ${ofRow(tile, "statistics", r)};
      let is_seen = ${seenColumns(parts, "queries", r)};
      let p = select(vec4f(), row_exp(${scaledScores(parts, r)} - vec4f(own.x)), is_seen);
      score${r} = select(vec4f(), p * (${keptOf(parts, r, `change${r}${isDropping ? " * s.factor" : ""}`)} - vec4f(own.y)), is_seen);
    }
`,
)}${accumulate(tile, result, "score", "key", { start: "key_start", column: "first_column", last: "seen - 1u" })}  }
${storeResult(tile, result, { out: "queryGradient", start: "query_start", length: "s.queries" }, (sum) => `${sum} * s.scale`)}}
`;
    },
    workgroups: ({ entries = 0, queries = 0 }, _, context) =>
      tileWorkgroups(attentionTile(context, 2, [sizeQuads]), entries, queries),
    operations: operationsOf(2, 1),
    reference(views, scalars) {
      const [q, k, v] = views as [KernelView, KernelView, KernelView];
      const [g, statistics, out] = views.slice(-3) as [KernelView, KernelView, KernelView];
      const { entries, queries, keys, size, width, scale } = scalars as unknown as Numbers;
      const { limit, shown, kept } = visibilityOf(
        parts,
        parts.mask ? views[3] : undefined,
        scalars,
      );
      const stride = paddedWidth(size);
      const sums = new Float64Array(size);
      for (let entry = 0; entry < entries; entry++)
        for (let query = 0; query < queries; query++) {
          const row = entry * queries + query;
          const seen = limit(entry, query);
          const [logSum, average] = [statistics[row * 2], statistics[row * 2 + 1]] as [
            number,
            number,
          ];
          sums.fill(0);
          for (let key = 0; key < seen; key++) {
            const position = entry * keys + key;
            const score = product(q, row * size, k, position * size, size) * scale;
            const p = Math.exp(shown(score, entry, query, key) - logSum);
            const change = product(g, row * width, v, position * width, width);
            const weight = p * (kept(change, entry, query, key) - average);
            for (let c = 0; c < size; c++)
              sums[c] = (sums[c] as number) + weight * (k[position * size + c] as number);
          }
          for (let c = 0; c < size; c++) out[row * stride + c] = (sums[c] as number) * scale;
        }
    },
  });
});
