import type { Binding, KernelView, LaunchTarget } from "@halfstep/device";
import { requireLengths } from "../operands.js";
import { type AttentionGradientOperands, requireGradient } from "./operands.js";
import { withoutPadding, withPadding } from "./padded.js";
import { definePass, launchOf } from "./pass.js";
import { addRow, eachScoreGradient, setRows } from "./reference.js";
import type { AttentionAttributes } from "./shape.js";
import { each } from "./tile.js";
import { keptOf, scaledScores, seenColumns } from "./visibility.js";

/**
 * keyGradient = Σ scoreGradient · query · scale and valueGradient = Σ p · outGradient, the sums over queries, with probabilities
 * and score gradients computed again as for `attentionQueryGradient`. Each key is summed by one subgroup, in a fixed order.
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
    columns: `${each(4, (u) => `    let own${u} = load_statistics(column${u});\n`)}    let logSums = vec4f(own0.x, own1.x, own2.x, own3.x);
    let averages = vec4f(own0.y, own1.y, own2.y, own3.y);
`,
    weigh: (r) => `      let is_seen = ${seenColumns(parts, "keys", r)};
      let p = select(vec4f(), row_exp(${scaledScores(parts, r)} - logSums), is_seen);
      change${r} = select(vec4f(), p * (${keptOf(parts, r, `change${r}${parts.isDropping ? " * s.factor" : ""}`)} - averages), is_seen);
      score${r} = ${keptOf(parts, r, parts.isDropping ? "p * s.factor" : "p")};
`,
  }),
  reference(views) {
    const { query: q, entries, keys, size, width, scale } = views;
    const [g, , keyOut, valueOut] = views.others as [
      KernelView,
      KernelView,
      KernelView,
      KernelView,
    ];
    const keySums = new Float64Array(entries * keys * size);
    const valueSums = new Float64Array(entries * keys * width);
    eachScoreGradient(views, (query, key, scoreGradient, probability) => {
      addRow(keySums, key, q, query, size, scoreGradient * scale);
      addRow(valueSums, key, g, query, width, probability);
    });
    setRows(keyOut, keySums, size);
    setRows(valueOut, valueSums, width);
  },
}));
