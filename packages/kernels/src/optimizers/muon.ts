import { constant, select } from "../formula/term.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { gatherTotals } from "./segment-gather.js";

/**
 * Muon (Jordan et al. 2024) as torch.optim computes it, around the orthogonalisation: the momentum, its norm, and the step by
 * `orthogonal`. Columns and rows give the adjustment of the rate, `sqrt(max(1, rows / columns))` or, where `matchRms` is 1,
 * `0.2 sqrt(max(rows, columns))`.
 */
export const muonRule: UpdateRule = updateRule({
  name: "muon",
  state: { momentumBuffer: "signed", update: "transient" },
  scalars: ["momentum", "oneMinusMomentum", "nesterov", "eps", "weightDecay", "matchRms"],
  gather: gatherTotals,
  passes: [
    {
      update({ g, momentumBuffer, momentum, oneMinusMomentum, nesterov }) {
        const average = momentumBuffer.add(oneMinusMomentum.mul(g.sub(momentumBuffer)));
        const ahead = g.add(momentum.mul(average.sub(g)));
        return { momentumBuffer: average, update: select(nesterov.eq(1), ahead, average) };
      },
      totals: {
        terms: ({ update }) => [update.square()],
        factors: ["inverse", "adjust"],
        make: ({ total0, rows, columns, eps, matchRms }) => ({
          inverse: constant(1).div(total0.sqrt().max(eps)),
          adjust: select(
            matchRms.eq(1),
            constant(0.2).mul(rows.max(columns).sqrt()),
            constant(1).max(rows.div(columns)).sqrt(),
          ),
        }),
      },
    },
    { update: ({ update, inverse }) => ({ update: update.mul(inverse) }) },
    {
      inputs: {
        bindings: [{ name: "orthogonal", access: "read", dtypes: ["float32"] }],
        values: ["orthogonal"],
        wgsl: "let orthogonal = load_orthogonal(q);",
        load({ orthogonal }, { index }, e) {
          e.orthogonal = orthogonal?.[index] as number;
        },
      },
      update({ p, orthogonal, lr, adjust, weightDecay }) {
        const decayed = p.mul(constant(1).sub(lr.mul(weightDecay)));
        return { p: decayed.sub(lr.mul(adjust).mul(orthogonal)) };
      },
    },
  ],
});
