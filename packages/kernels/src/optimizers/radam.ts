import { constant } from "../formula/term.js";
import { averageOfSquares } from "./average-of-squares.js";
import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

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
        update({ g, p, lr, weightDecay, eps, ...e }) {
          const decayed = decoupled ? p.mul(constant(1).sub(lr.mul(weightDecay))) : p;
          const gradient = decoupled ? g : withDecay(g, weightDecay, p);
          const expAvg = e.expAvg.add(e.oneMinusBeta1.mul(gradient.sub(e.expAvg)));
          const expAvgSq = averageOfSquares(e.expAvgSq, gradient, {
            keep: e.beta2,
            share: e.oneMinusBeta2,
          });
          const factor = e.rectified.div(expAvgSq.sqrt().add(eps)).add(e.plain);
          const step = lr.mul(e.correction1).mul(expAvg).mul(factor);
          return { expAvg, expAvgSq, p: decayed.sub(step) };
        },
      },
    ],
  }),
);
