import { constant } from "../formula/term.js";
import { averageOfSquares } from "./average-of-squares.js";
import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

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
        update({ g, p, lr, weightDecay, eps, ...e }) {
          const decayed = decoupled ? p.mul(constant(1).sub(lr.mul(weightDecay))) : p;
          const gradient = decoupled ? g : withDecay(g, weightDecay, p);
          const expAvg = e.expAvg.add(e.oneMinusBeta1.mul(gradient.sub(e.expAvg)));
          const expAvgSq = averageOfSquares(e.expAvgSq, gradient, {
            keep: e.beta2,
            share: e.oneMinusBeta2,
          });
          const step = e.gradientShare.mul(gradient).add(e.averageShare.mul(expAvg));
          const deviation = expAvgSq.sqrt().mul(e.correction2).add(eps);
          return { expAvg, expAvgSq, p: decayed.sub(lr.mul(step).div(deviation)) };
        },
      },
    ],
  }),
);
