import type { Binding, LaunchTarget } from "@halfstep/device";
import { requireLengths, requireTarget } from "../operands.js";
import { type AttentionGradientOperands, requireGradient } from "./operands.js";
import { intoRows } from "./padded.js";
import { definePass, type HeadView, launchOf } from "./pass.js";
import { addRow, eachScoreGradient, setRows } from "./reference.js";
import type { AttentionAttributes } from "./shape.js";
import { ofRow, rowRegisters } from "./tile.js";
import { keptOf, scaledScores, seenColumns } from "./visibility.js";

/**
 * queryGradient = Σ scoreGradient · key · scale, where scoreGradient = p · (outGradient valueᵀ − Σ out · outGradient), with the
 * probabilities p computed again, a tile at a time.
 */
export function attentionQueryGradient<B>(
  target: LaunchTarget<B>,
  operands: AttentionGradientOperands<B> & { readonly queryGradient: Binding<B> },
  attributes: AttentionAttributes,
): void {
  requireTarget("attentionQueryGradient", target);
  requireGradient("attentionQueryGradient", operands, attributes);
  const { query, outGradient, statistics, queryGradient } = operands;
  requireLengths("attentionQueryGradient", { queryGradient }, { queryGradient: query.length });
  intoRows(target, queryGradient, attributes.size, (rows) =>
    launchOf(queryKernel, operands, [outGradient, statistics, rows], attributes),
  );
}

const queryKernel = definePass((parts) => ({
  name: "attentionQueryGradient",
  rows: "queries",
  isBackward: true,
  results: [
    {
      name: "gradient",
      quads: parts.sizeQuads,
      size: "s.size",
      weights: "score",
      values: "key",
      out: "queryGradient",
      finished: (sum) => `${sum} * s.scale`,
    },
  ],
  statements: (tile) => ({
    registers: rowRegisters(
      tile,
      "statistics",
      (part) => `load_statistics(query_start + min(row + ${part}, s.queries - 1u))`,
    ),
    weigh: (r) => `      let own = ${ofRow(tile, "statistics", r)};
      let is_seen = ${seenColumns(parts, "queries", r)};
      let p = select(vec4f(), row_exp((${scaledScores(parts, r)} - vec4f(own.x)) - vec4f(own.y)), is_seen);
      score${r} = select(vec4f(), p * (${keptOf(parts, r, `change${r}${parts.isDropping ? " * s.factor" : ""}`)} - vec4f(own.z)), is_seen);
`,
  }),
  reference(views) {
    const { key: k, results, entries, queries, size, scale } = views;
    const sums = new Float64Array(entries * queries * size);
    eachScoreGradient(views, ({ entry, query, key, scoreGradient }) =>
      addRow(sums, entry * queries + query, k.view, k.at(entry, key), size, scoreGradient),
    );
    const gradient = sums.map((sum) => sum * scale);
    setRows(results[0] as HeadView, gradient, { entries, tokens: queries, size });
  },
}));
