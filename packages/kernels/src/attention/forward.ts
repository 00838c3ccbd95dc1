import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { keepingNan } from "../wgsl/transcendental.js";
import { intoRows, paddedWidth } from "./padded.js";
import {
  type AttentionAttributes,
  attentionParts,
  byParts,
  maskBindings,
  operationsOf,
  requireShape,
  scalarsOf,
  scalarValues,
  variantOf,
} from "./shape.js";
import {
  accumulate,
  attentionTile,
  each,
  overLanes,
  type ResultTile,
  resultTile,
  rowPositions,
  rowQuads,
  scaleRow,
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

/** Operands that the forward pass and both backward passes read. */
export interface AttentionOperands<B> {
  /** [entries, queries, size] */
  readonly query: Binding<B>;
  /** [entries, keys, size] */
  readonly key: Binding<B>;
  /** [entries, keys, width] */
  readonly value: Binding<B>;
  /** What the attributes' `mask` describes. */
  readonly mask?: Binding<B> | undefined;
}

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
  const { query, key, value, mask, out: result, logSumExp } = operands;
  const lengths = { out: entries * queries * width, logSumExp: entries * queries };
  requireLengths("attention", { out: result, logSumExp }, lengths);
  intoRows(target, result, width, (out) => ({
    kernel: forwardKernel(attentionParts(attributes)),
    bindings: [query, key, value, ...maskBindings(mask), out, logSumExp],
    scalars: scalarValues(attributes),
  }));
}

/** Throws unless the operands that all passes share are as the attributes say. */
export function requireAttention<B>(
  op: string,
  operands: AttentionOperands<B>,
  attributes: AttentionAttributes,
): void {
  const { entries, queries, keys, size, width, mask, dropout } = attributes;
  requireShape(op, attributes);
  const { query, key, value } = operands;
  const lengths = {
    query: entries * queries * size,
    key: entries * keys * size,
    value: entries * keys * width,
  };
  requireLengths(op, { query, key, value }, lengths);
  if ((mask === undefined) !== (operands.mask === undefined))
    throw new TypeError(`${op}: a binding "mask" and the attribute that describes it go together`);
  if (dropout && entries * queries * keys >= 2 ** 32)
    throw new RangeError(
      `${op}: dropout numbers at most 2^32 probabilities, not ${entries} × ${queries} × ${keys}: take fewer entries at a time`,
    );
}

const forwardKernel = byParts((parts): Kernel => {
  const { widthQuads, isSizeAligned, isWidthAligned, isDropping } = parts;
  const result: ResultTile = { name: "out", quads: widthQuads, size: "s.width" };
  return defineKernel({
    name: "attention",
    variant: variantOf(parts),
    bindings: [
      { name: "query", access: "read" },
      { name: "key", access: "read" },
      { name: "value", access: "read" },
      ...maskBinding(parts),
      { name: "out", access: "write" },
      { name: "logSumExp", access: "write", unit: 1, dtypes: ["float32"] },
    ],
    scalars: scalarsOf(parts),
    subgroups: ({ subgroupSize }) => subgroupSize > 0,
    body(context) {
      const tile = attentionTile(context, 1, [widthQuads]);
      const { lanes, rows } = tile;
      return `${rowQuads("query", "s.size", isSizeAligned)}${rowQuads("key", "s.size", isSizeAligned)}${rowQuads(
        "value",
        "s.width",
        isWidthAligned,
      )}${visibilityFunctions(parts)}${keepingNan("row_log", "log(x)")}
${tileMain(tile, "s.queries")}
  let query_start = entry * s.queries;
  let key_start = entry * s.keys;
  let seen = seen_keys(entry);
  let end = select(seen, min(seen, row + ${rows}u), s.causal != 0u);
${rowPositions(tile, "query_start", "s.queries")}${each(rows, (r) => `  var top${r} = -3.4e38; var total${r} = 0.0;\n`)}${resultTile(tile, result)}
  for (var first_column = 0u; first_column < end; first_column += ${4 * lanes}u) {
    let column = first_column + lane * 4u;
${each(4, (u) => `    let column${u} = key_start + min(column + ${u}u, seen - 1u);\n`)}${scoreTile(tile, "score", "query", "key", "s.size")}${tileVisibility(parts, "queries", rows)}${each(
  rows,
  (r) => `    {
      let x = shown(${scaledScores(parts, r)}, ${seenColumns(parts, "queries", r)});
      var most = max(max(x.x, x.y), max(x.z, x.w));
      ${overLanes(tile, "most", "max")}
      most = max(top${r}, most);
      let shrink = row_exp(vec4f(top${r} - most)).x;
      top${r} = most;
      let p = row_exp(x - vec4f(most));
      total${r} = total${r} * shrink + ((p.x + p.y) + (p.z + p.w));
      score${r} = ${keptOf(parts, r, "p")};
      ${scaleRow(tile, result, r, "shrink")}
    }
`,
)}${accumulate(tile, result, "score", "value", { start: "key_start", column: "first_column", last: "seen - 1u" })}  }
${each(
  rows,
  (r) => `  ${overLanes(tile, `total${r}`, "sum")}
  let divisor${r} = 1.0 / select(total${r}, 1.0, total${r} == 0.0)${isDropping ? " * s.factor" : ""};
`,
)}${storeResult(tile, result, { out: "out", start: "query_start", length: "s.queries" }, (sum, r) => `${sum} * divisor${r}`)}  var logs = array<f32, ${rows}>(${Array.from(
        { length: rows },
        (_, r) => `select(top${r} + row_log(vec4f(total${r})).x, 0.0, total${r} == 0.0)`,
      ).join(", ")});
  for (var r = lane; r < min(${rows}u, s.queries - row); r += ${lanes}u) { store_logSumExp(query_start + row + r, logs[r]); }
}
`;
    },
    workgroups: ({ entries = 0, queries = 0 }, _, context) =>
      tileWorkgroups(attentionTile(context, 1, [widthQuads]), entries, queries),
    operations: operationsOf(1, 1),
    reference(views, scalars) {
      const [q, k, v] = views as [KernelView, KernelView, KernelView];
      const [out, logSumExp] = views.slice(-2) as [KernelView, KernelView];
      const { entries, queries, keys, size, width, scale } = scalars as unknown as Numbers;
      const { limit, shown, kept } = visibilityOf(
        parts,
        parts.mask ? views[3] : undefined,
        scalars,
      );
      const stride = paddedWidth(width);
      const scores = new Float64Array(keys);
      const sums = new Float64Array(width);
      for (let entry = 0; entry < entries; entry++)
        for (let query = 0; query < queries; query++) {
          const row = entry * queries + query;
          const seen = limit(entry, query);
          let top = -3.4e38;
          for (let key = 0; key < seen; key++) {
            const score = product(q, row * size, k, (entry * keys + key) * size, size) * scale;
            scores[key] = shown(score, entry, query, key);
            top = Math.max(top, scores[key] as number);
          }
          let total = 0;
          sums.fill(0);
          for (let key = 0; key < seen; key++) {
            const p = Math.exp((scores[key] as number) - top);
            total += p;
            const weight = kept(p, entry, query, key);
            const at = (entry * keys + key) * width;
            for (let c = 0; c < width; c++)
              sums[c] = (sums[c] as number) + weight * (v[at + c] as number);
          }
          for (let c = 0; c < width; c++)
            out[row * stride + c] = (sums[c] as number) / (total === 0 ? 1 : total);
          logSumExp[row] = total === 0 ? 0 : top + Math.log(total);
        }
    },
  });
});

/** The scalars of a reference. */
export type Numbers = Readonly<
  Record<"entries" | "queries" | "keys" | "size" | "width" | "scale" | "causal", number>
>;

/** The scalar product of so many elements of two views. */
export function product(
  a: KernelView,
  aStart: number,
  b: KernelView,
  bStart: number,
  count: number,
): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += (a[aStart + i] as number) * (b[bStart + i] as number);
  return sum;
}
