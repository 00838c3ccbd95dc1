import { constant, select } from "../formula/term.js";
import { averageOfSquares } from "./average-of-squares.js";
import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

/**
 * Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) as torch.optim computes them. Columns are
 * `1 / (1 - beta1^t)` and `1 / sqrt(1 - beta2^t)`.
 */
export const adamRule: RuleFamily<{ readonly amsgrad: boolean; readonly decoupled: boolean }> =
  ruleFamily(({ amsgrad, decoupled }) =>
    updateRule({
      name: `${decoupled ? "adamw" : "adam"}${amsgrad ? " amsgrad" : ""}`,
      state: {
        expAvg: "signed",
        expAvgSq: "unsigned",
        ...(amsgrad ? ({ maxExpAvgSq: "unsigned" } as const) : {}),
      } as { expAvg: "signed"; expAvgSq: "unsigned"; maxExpAvgSq: "unsigned" },
      scalars: ["oneMinusBeta1", "beta2", "oneMinusBeta2", "eps", "weightDecay"],
      columns: ["correction1", "correction2"],
      passes: [
        {
          update({ g, p, lr, weightDecay, eps, ...e }) {
            const gradient = decoupled ? g : withDecay(g, weightDecay, p);
            const expAvg = e.expAvg.add(e.oneMinusBeta1.mul(gradient.sub(e.expAvg)));
            const expAvgSq = averageOfSquares(e.expAvgSq, gradient, {
              keep: e.beta2,
              share: e.oneMinusBeta2,
            });
            const largest = amsgrad && select(e.maxExpAvgSq.gt(expAvgSq), e.maxExpAvgSq, expAvgSq);
            const deviation = (largest || expAvgSq).sqrt().mul(e.correction2).add(eps);
            const decayed = decoupled ? p.mul(constant(1).sub(lr.mul(weightDecay))) : p;
            return {
              expAvg,
              expAvgSq,
              ...(largest && { maxExpAvgSq: largest }),
              p: decayed.sub(lr.mul(e.correction1).mul(expAvg.div(deviation))),
            };
          },
        },
      ],
    }),
  );
