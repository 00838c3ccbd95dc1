import { select } from "../formula/term.js";
import { averageOfSquares } from "./average-of-squares.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { gatherTotals } from "./segment-gather.js";
import { withDecay } from "./weight-decay.js";

/**
 * BertAdam of pytorch-pretrained-BERT 0.6.2: each parameter's gradient is clipped by its own norm, nothing corrects the bias,
 * and weight decay is part of the step. The column multiplies the learning rate. A `maxGradNorm` of 0 or less clips nothing.
 */
export const bertAdamRule: UpdateRule = updateRule({
  name: "bert-adam",
  state: { expAvg: "signed", expAvgSq: "unsigned" },
  scalars: [
    "beta1",
    "oneMinusBeta1",
    "beta2",
    "oneMinusBeta2",
    "eps",
    "weightDecay",
    "maxGradNorm",
  ],
  columns: ["multiplier"],
  gather: gatherTotals,
  passes: [
    {
      totals: {
        terms: ({ g }) => [g.square()],
        factors: ["clip"],
        make({ total0, maxGradNorm }) {
          const factor = maxGradNorm.div(total0.sqrt().add(1e-6));
          return { clip: select(maxGradNorm.gt(0), factor.min(1), 1) };
        },
      },
    },
    {
      update({ g, p, lr, weightDecay, eps, ...e }) {
        const gradient = g.mul(e.clip);
        const expAvg = e.expAvg.mul(e.beta1).add(e.oneMinusBeta1.mul(gradient));
        const expAvgSq = averageOfSquares(e.expAvgSq, gradient, {
          keep: e.beta2,
          share: e.oneMinusBeta2,
        });
        const step = withDecay(expAvg.div(expAvgSq.sqrt().add(eps)), weightDecay, p);
        return { expAvg, expAvgSq, p: p.sub(lr.mul(e.multiplier).mul(step)) };
      },
    },
  ],
});
