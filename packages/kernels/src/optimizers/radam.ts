import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";

/**
 * RAdam (Liu et al. 2020) as torch.optim computes it. Columns are `1 / (1 - beta1^t)`; the rectification times `sqrt(1
 * - beta2^t)`, or 0 while the variance is intractable; and 1 while it is intractable, else 0.
 */
export const radamRule: RuleFamily<{ readonly decoupled: boolean }> = ruleFamily(({ decoupled }) =>
  updateRule({
    name: `radam${decoupled ? " decoupled" : ""}`,
    state: { expAvg: "signed", expAvgSq: "unsigned" },
    scalars: ["oneMinusBeta1", "beta2", "oneMinusBeta2", "eps", "weightDecay"],
    columns: ["correction1", "rectified", "plain"],
    passes: [
      {
        wgsl: `${decoupled ? "p *= 1.0 - lr * weightDecay;" : "g += weightDecay * p;"}
  expAvg += oneMinusBeta1 * (g - expAvg);
  expAvgSq = expAvgSq * beta2 + oneMinusBeta2 * (g * g);
  p -= (lr * correction1) * expAvg * (rectified / (sqrt(expAvgSq) + eps) + plain);`,
        update(e, s) {
          if (decoupled) e.p *= 1 - s.lr * s.weightDecay;
          else e.g += s.weightDecay * e.p;
          e.expAvg += s.oneMinusBeta1 * (e.g - e.expAvg);
          e.expAvgSq = e.expAvgSq * s.beta2 + s.oneMinusBeta2 * e.g * e.g;
          const factor = s.rectified / (Math.sqrt(e.expAvgSq) + s.eps) + s.plain;
          e.p -= s.lr * s.correction1 * e.expAvg * factor;
        },
      },
    ],
  }),
);
