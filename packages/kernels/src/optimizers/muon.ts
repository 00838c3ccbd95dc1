import { type UpdateRule, updateRule } from "./rule.js";

/**
 * Muon (Jordan et al. 2024) as torch.optim computes it, around the orthogonalisation: the momentum, its norm, and the step by
 * `orthogonal`. Columns and rows give the adjustment of the rate, `sqrt(max(1, rows / columns))` or, where `matchRms` is 1,
 * `0.2 sqrt(max(rows, columns))`.
 */
export const muonRule: UpdateRule = updateRule({
  name: "muon",
  state: { momentumBuffer: "signed", update: "transient" },
  scalars: ["momentum", "oneMinusMomentum", "nesterov", "eps", "weightDecay", "matchRms"],
  passes: [
    {
      wgsl: `momentumBuffer += oneMinusMomentum * (g - momentumBuffer);
  update = momentumBuffer;
  if (nesterov == 1.0) { update = g + momentum * (momentumBuffer - g); }`,
      update(e, s) {
        e.momentumBuffer += s.oneMinusMomentum * (e.g - e.momentumBuffer);
        e.update = s.nesterov ? e.g + s.momentum * (e.momentumBuffer - e.g) : e.momentumBuffer;
      },
      totals: {
        terms: [{ wgsl: "update * update", value: (e) => e.update * e.update }],
        factors: ["inverse", "adjust"],
        wgsl: `inverse = 1.0 / max(sqrt(total0), eps);
  adjust = sqrt(max(1.0, rows / columns));
  if (matchRms == 1.0) { adjust = 0.2 * sqrt(max(rows, columns)); }`,
        update(t, s) {
          const { total0, rows, columns } = t as { total0: number; rows: number; columns: number };
          t.inverse = 1 / Math.max(Math.sqrt(total0), s.eps);
          t.adjust = s.matchRms
            ? 0.2 * Math.sqrt(Math.max(rows, columns))
            : Math.sqrt(Math.max(1, rows / columns));
        },
      },
    },
    {
      wgsl: "update *= inverse;",
      update(e, s) {
        e.update *= s.inverse;
      },
    },
    {
      inputs: {
        bindings: [{ name: "orthogonal", access: "read", dtypes: ["float32"] }],
        wgsl: "let orthogonal = load_orthogonal(q);",
        load({ orthogonal }, { index }, e) {
          e.orthogonal = orthogonal?.[index] as number;
        },
      },
      wgsl: "p = p * (1.0 - lr * weightDecay) - (lr * adjust) * orthogonal;",
      update(e, s) {
        const { orthogonal } = e as unknown as { readonly orthogonal: number };
        e.p = e.p * (1 - s.lr * s.weightDecay) - s.lr * s.adjust * orthogonal;
      },
    },
  ],
});
