import { type UpdateRule, updateRule } from "./rule.js";

/** Adamax (Kingma and Ba 2015) as torch.optim computes it. The column is `1 / (1 - beta1^t)`. */
export const adamaxRule: UpdateRule = updateRule({
  name: "adamax",
  state: { expAvg: "signed", expInf: "unsigned" },
  scalars: ["oneMinusBeta1", "beta2", "eps", "weightDecay"],
  columns: ["correction1"],
  passes: [
    {
      wgsl: `g += weightDecay * p;
  expAvg += oneMinusBeta1 * (g - expAvg);
  expInf = max(expInf * beta2, abs(g) + eps);
  p -= (lr * correction1) * (expAvg / expInf);`,
      update(e, s) {
        e.g += s.weightDecay * e.p;
        e.expAvg += s.oneMinusBeta1 * (e.g - e.expAvg);
        e.expInf = Math.max(e.expInf * s.beta2, Math.abs(e.g) + s.eps);
        e.p -= (s.lr * s.correction1 * e.expAvg) / e.expInf;
      },
    },
  ],
});
