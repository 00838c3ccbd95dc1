import { type UpdateRule, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

/** Adamax (Kingma and Ba 2015) as torch.optim computes it. The column is `1 / (1 - beta1^t)`. */
export const adamaxRule: UpdateRule = updateRule({
  name: "adamax",
  state: { expAvg: "signed", expInf: "unsigned" },
  scalars: ["oneMinusBeta1", "beta2", "eps", "weightDecay"],
  columns: ["correction1"],
  passes: [
    {
      update({ g, p, lr, weightDecay, eps, ...e }) {
        const gradient = withDecay(g, weightDecay, p);
        const expAvg = e.expAvg.add(e.oneMinusBeta1.mul(gradient.sub(e.expAvg)));
        const expInf = e.expInf.mul(e.beta2).max(gradient.abs().add(eps));
        return { expAvg, expInf, p: p.sub(lr.mul(e.correction1).mul(expAvg.div(expInf))) };
      },
    },
  ],
});
