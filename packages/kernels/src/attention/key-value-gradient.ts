import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { type Numbers, product } from "./forward.js";
import { paddedWidth, withoutPadding, withPadding } from "./padded.js";
import { type AttentionGradientOperands, requireGradient } from "./query-gradient.js";
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
  type ResultTile,
  resultTile,
  rowPositions,
  rowQuads,
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

/**
 * keyGradient = Σ scoreGradient · query · scale and valueGradient = Σ p · outGradient, the sums over queries, with probabilities
 * and score gradients computed again as for {@link attentionQueryGradient}. Each key is summed by one subgroup, in a fixed order.
 */
export function attentionKeyValueGradient<B>(
  target: LaunchTarget<B>,
  operands: AttentionGradientOperands<B> & {
    readonly keyGradient: Binding<B>;
    readonly valueGradient: Binding<B>;
  },
  attributes: AttentionAttributes,
): void {
  const op = "attentionKeyValueGradient";
  requireGradient(op, operands, attributes);
  const { query, key, value, mask, outGradient, statistics, keyGradient, valueGradient } = operands;
  const lengths = { keyGradient: key.length, valueGradient: value.length };
  requireLengths(op, { keyGradient, valueGradient }, lengths);
  const { size, width } = attributes;
  const keyRows = withPadding(target, keyGradient, size);
  const valueRows = withPadding(target, valueGradient, width);
  const read = [query, key, value, ...maskBindings(mask), outGradient, statistics];
  target.launch({
    kernel: keyValueKernel(attentionParts(attributes)),
    bindings: [...read, keyRows, valueRows],
    scalars: scalarValues(attributes),
  });
  withoutPadding(target, keyRows, keyGradient, size);
  withoutPadding(target, valueRows, valueGradient, width);
}

const keyValueKernel = byParts((parts): Kernel => {
  const { sizeQuads, widthQuads, isSizeAligned, isWidthAligned, isDropping } = parts;
  const keyResult: ResultTile = { name: "keySum", quads: sizeQuads, size: "s.size" };
  const valueResult: ResultTile = { name: "valueSum", quads: widthQuads, size: "s.width" };
  const from = { start: "query_start", column: "first_column", last: "s.queries - 1u" };
  const to = { start: "key_start", length: "s.keys" };
  return defineKernel({
    name: "attentionKeyValueGradient",
    variant: variantOf(parts),
    bindings: [
      { name: "query", access: "read" },
      { name: "key", access: "read" },
      { name: "value", access: "read" },
      ...maskBinding(parts),
      { name: "outGradient", access: "read" },
      { name: "statistics", access: "read", unit: 2, dtypes: ["float32"] },
      { name: "keyGradient", access: "write" },
      { name: "valueGradient", access: "write" },
    ],
    scalars: scalarsOf(parts),
    subgroups: ({ subgroupSize }) => subgroupSize > 0,
    body(context) {
      const tile = attentionTile(context, 2, [sizeQuads, widthQuads]);
      const { lanes, rows } = tile;
      return `${rowQuads("query", "s.size", isSizeAligned)}${rowQuads("key", "s.size", isSizeAligned)}${rowQuads(
        "value",
        "s.width",
        isWidthAligned,
      )}${rowQuads("outGradient", "s.width", isWidthAligned)}${visibilityFunctions(parts)}
${tileMain(tile, "s.keys")}
  let query_start = entry * s.queries;
  let key_start = entry * s.keys;
  let seen = seen_keys(entry);
  let begin = select(0u, row, s.causal != 0u);
  let end = select(0u, s.queries, row < seen);
${rowPositions(tile, "key_start", "s.keys")}${resultTile(tile, keyResult)}${resultTile(tile, valueResult)}
  for (var first_column = begin; first_column < end; first_column += ${4 * lanes}u) {
    let column = first_column + lane * 4u;
${each(4, (u) => `    let column${u} = query_start + min(column + ${u}u, s.queries - 1u);\n`)}${each(
  4,
  (u) => `    let own${u} = load_statistics(column${u});\n`,
)}    let logSums = vec4f(own0.x, own1.x, own2.x, own3.x);
    let averages = vec4f(own0.y, own1.y, own2.y, own3.y);
${scoreTile(tile, "score", "key", "query", "s.size")}${scoreTile(tile, "change", "value", "outGradient", "s.width")}${tileVisibility(parts, "keys", rows)}${each(
  rows,
  (r) => `    {
      let is_seen = ${seenColumns(parts, "keys", r)};
      let p = select(vec4f(), row_exp(${scaledScores(parts, r)} - logSums), is_seen);
      change${r} = select(vec4f(), p * (${keptOf(parts, r, `change${r}${isDropping ? " * s.factor" : ""}`)} - averages), is_seen);
      score${r} = ${keptOf(parts, r, isDropping ? "p * s.factor" : "p")};
    }
`,
)}${accumulate(tile, keyResult, "change", "query", from)}${accumulate(tile, valueResult, "score", "outGradient", from)}  }
${storeResult(tile, keyResult, { ...to, out: "keyGradient" }, (sum) => `${sum} * s.scale`)}${storeResult(tile, valueResult, { ...to, out: "valueGradient" }, (sum) => sum)}}
`;
    },
    workgroups: ({ entries = 0, keys = 0 }, _, context) =>
      tileWorkgroups(attentionTile(context, 2, [sizeQuads, widthQuads]), entries, keys),
    operations: operationsOf(2, 2),
    reference(views, scalars) {
      const [q, k, v] = views as [KernelView, KernelView, KernelView];
      const [g, statistics, keyOut, valueOut] = views.slice(-4) as [
        KernelView,
        KernelView,
        KernelView,
        KernelView,
      ];
      const { entries, queries, keys, size, width, scale } = scalars as unknown as Numbers;
      const { limit, shown, kept } = visibilityOf(
        parts,
        parts.mask ? views[3] : undefined,
        scalars,
      );
      const keySums = new Float64Array(keys * size);
      const valueSums = new Float64Array(keys * width);
      for (let entry = 0; entry < entries; entry++) {
        keySums.fill(0);
        valueSums.fill(0);
        for (let query = 0; query < queries; query++) {
          const row = entry * queries + query;
          const seen = limit(entry, query);
          const [logSum, average] = [statistics[row * 2], statistics[row * 2 + 1]] as [
            number,
            number,
          ];
          for (let key = 0; key < seen; key++) {
            const position = entry * keys + key;
            const score = product(q, row * size, k, position * size, size) * scale;
            const p = Math.exp(shown(score, entry, query, key) - logSum);
            const dot = product(g, row * width, v, position * width, width);
            const change = kept(dot, entry, query, key);
            addScaled(keySums, key * size, q, row * size, size, p * (change - average) * scale);
            addScaled(valueSums, key * width, g, row * width, width, kept(p, entry, query, key));
          }
        }
        setRows(keyOut, keySums, entry * keys, keys, size);
        setRows(valueOut, valueSums, entry * keys, keys, width);
      }
    },
  });
});

function addScaled(
  sums: Float64Array,
  to: number,
  x: KernelView,
  from: number,
  count: number,
  factor: number,
): void {
  for (let i = 0; i < count; i++)
    sums[to + i] = (sums[to + i] as number) + factor * (x[from + i] as number);
}

function setRows(
  out: KernelView,
  sums: Float64Array,
  start: number,
  rows: number,
  width: number,
): void {
  const stride = paddedWidth(width);
  for (let row = 0; row < rows; row++)
    out.set(sums.subarray(row * width, (row + 1) * width), (start + row) * stride);
}
