import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

/**
 * Adagrad (Duchi et al. 2011) as torch.optim computes it, or with apex's decoupled weight decay as part of the step. The column is
 * `1 / (1 + (t - 1) lrDecay)`. Its sum only grows, and fewer bits would lose small terms: it is float32 for every storage of moments.
 */
export const adagradRule: RuleFamily<{ readonly decoupled: boolean }> = ruleFamily(
  ({ decoupled }) =>
    updateRule({
      name: `adagrad${decoupled ? " decoupled" : ""}`,
      state: { sum: "exact" },
      scalars: ["eps", "weightDecay"],
      columns: ["decay"],
      passes: [
        {
          update({ g, p, sum, lr, decay, eps, weightDecay }) {
            const gradient = decoupled ? g : withDecay(g, weightDecay, p);
            const squares = sum.add(gradient.square());
            const step = gradient.div(squares.sqrt().add(eps));
            const decayed = decoupled ? withDecay(step, weightDecay, p) : step;
            return { sum: squares, p: p.sub(lr.mul(decay).mul(decayed)) };
          },
        },
      ],
    }),
);
