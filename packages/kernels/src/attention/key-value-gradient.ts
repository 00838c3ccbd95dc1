import type { Binding, LaunchTarget } from "@halfstep/device";
import { requireLengths, requireTarget } from "../operands.js";
import { type AttentionGradientOperands, requireGradient } from "./operands.js";
import { withoutPadding, withPadding } from "./padded.js";
import { definePass, type HeadView, launchOf } from "./pass.js";
import { addRow, eachScoreGradient, setRows } from "./reference.js";
import type { AttentionAttributes } from "./shape.js";
import { each } from "./tile.js";
import { keptOf, scaledScores, seenColumns } from "./visibility.js";

/**
 * keyGradient = Σ scoreGradient · query · scale and valueGradient = Σ p · outGradient, the sums over queries, with probabilities
 * and score gradients computed again as for `attentionQueryGradient`. Each key is summed by one subgroup, in a fixed order, over all heads
 * of queries that share it.
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
  requireTarget(op, target);
  requireGradient(op, operands, attributes);
  const { key, value, outGradient, statistics, keyGradient, valueGradient } = operands;
  const lengths = { keyGradient: key.length, valueGradient: value.length };
  requireLengths(op, { keyGradient, valueGradient }, lengths);
  const { size, width } = attributes;
  const keyRows = withPadding(target, keyGradient, size);
  const valueRows = withPadding(target, valueGradient, width);
  const others = [outGradient, statistics, keyRows, valueRows];
  target.launch(launchOf(keyValueKernel, operands, others, attributes));
  withoutPadding(target, keyRows, keyGradient, size);
  withoutPadding(target, valueRows, valueGradient, width);
}

const keyValueKernel = definePass((parts) => ({
  name: "attentionKeyValueGradient",
  rows: "keys",
  isBackward: true,
  results: [
    {
      name: "keySum",
      quads: parts.sizeQuads,
      size: "s.size",
      weights: "change",
      values: "query",
      out: "keyGradient",
      finished: (sum) => `${sum} * s.scale`,
    },
    {
      name: "valueSum",
      quads: parts.widthQuads,
      size: "s.width",
      weights: "score",
      values: "outGradient",
      out: "valueGradient",
      finished: (sum) => sum,
    },
  ],
  statements: () => ({
    columns: `${each(4, (u) => `    let own${u} = load_statistics(query_start + column${u});\n`)}    let tops = vec4f(own0.x, own1.x, own2.x, own3.x);
    let logs = vec4f(own0.y, own1.y, own2.y, own3.y);
    let averages = vec4f(own0.z, own1.z, own2.z, own3.z);
`,
    weigh: (r) => `      let is_seen = ${seenColumns(parts, "keys", r)};
      let p = select(vec4f(), row_exp((${scaledScores(parts, r)} - tops) - logs), is_seen);
      change${r} = select(vec4f(), p * (${keptOf(parts, r, `change${r}${parts.isDropping ? " * s.factor" : ""}`)} - averages), is_seen);
      score${r} = ${keptOf(parts, r, parts.isDropping ? "p * s.factor" : "p")};
`,
  }),
  reference(views) {
    const { query, outGradient, results, group = 1, keys, size, width, scale } = views;
    const entries = views.entries / group;
    const [keyGradient, valueGradient] = results as [HeadView, HeadView];
    const keySums = new Float64Array(entries * keys * size);
    const valueSums = new Float64Array(entries * keys * width);
    eachScoreGradient(views, ({ entry, query: q, key, scoreGradient, probability }) => {
      const row = Math.floor(entry / group) * keys + key;
      addRow(keySums, row, query.view, query.at(entry, q), size, scoreGradient * scale);
      addRow(valueSums, row, outGradient.view, outGradient.at(entry, q), width, probability);
    });
    setRows(keyGradient, keySums, { entries, group, tokens: keys, size });
    setRows(valueGradient, valueSums, { entries, group, tokens: keys, size: width });
  },
}));
