import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";

/**
 * NAdam (Dozat 2016) as torch.optim computes it. Columns are `(1 - mu_t) / (1 - Πmu)`, `mu_{t+1} / (1 - Πmu · mu_{t+1})` and
 * `1 / sqrt(1 - beta2^t)`.
 */
export const nadamRule: RuleFamily<{ readonly decoupled: boolean }> = ruleFamily(({ decoupled }) =>
  updateRule({
    name: `nadam${decoupled ? " decoupled" : ""}`,
    state: { expAvg: "signed", expAvgSq: "unsigned" },
    scalars: ["oneMinusBeta1", "beta2", "oneMinusBeta2", "eps", "weightDecay"],
    columns: ["gradientShare", "averageShare", "correction2"],
    passes: [
      {
        wgsl: `${decoupled ? "p *= 1.0 - lr * weightDecay;" : "g += weightDecay * p;"}
  expAvg += oneMinusBeta1 * (g - expAvg);
  expAvgSq = expAvgSq * beta2 + oneMinusBeta2 * (g * g);
  p -= lr * (gradientShare * g + averageShare * expAvg) / (sqrt(expAvgSq) * correction2 + eps);`,
        update(e, s) {
          if (decoupled) e.p *= 1 - s.lr * s.weightDecay;
          else e.g += s.weightDecay * e.p;
          e.expAvg += s.oneMinusBeta1 * (e.g - e.expAvg);
          e.expAvgSq = e.expAvgSq * s.beta2 + s.oneMinusBeta2 * e.g * e.g;
          const step = s.gradientShare * e.g + s.averageShare * e.expAvg;
          e.p -= (s.lr * step) / (Math.sqrt(e.expAvgSq) * s.correction2 + s.eps);
        },
      },
    ],
  }),
);
