import { constant, select } from "../formula/term.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

/**
 * ASGD (Polyak and Juditsky 1992) as torch.optim computes it. Columns are `(1 + lambd · lr · (t - 1))^-alpha`, and the share of the new
 * parameters in their average, which is 1 until averaging begins. The average is float32 for every storage of moments.
 */
export const asgdRule: UpdateRule = updateRule({
  name: "asgd",
  state: { ax: "exact" },
  scalars: ["lambd", "weightDecay"],
  columns: ["decay", "share"],
  passes: [
    {
      update({ g, p, ax, lr, decay, share, lambd, weightDecay }) {
        const eta = lr.mul(decay);
        const gradient = withDecay(g, weightDecay, p);
        const next = p.mul(constant(1).sub(lambd.mul(eta))).sub(eta.mul(gradient));
        const averaged = ax.add(share.mul(next.sub(ax)));
        return { ax: select(share.lt(1), averaged, next), p: next };
      },
    },
  ],
});
