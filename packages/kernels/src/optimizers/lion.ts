import { constant } from "../formula/term.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { single } from "./single.js";

/** Lion (Chen et al. 2023, algorithm 2), with decoupled weight decay. */
export const lionRule: UpdateRule = updateRule({
  name: "lion",
  state: { expAvg: "signed" },
  scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "weightDecay"],
  passes: [
    {
      update({ g, p, expAvg, lr, beta1, oneMinusBeta1, beta2, oneMinusBeta2, weightDecay }) {
        const direction = single(expAvg.mul(beta1).add(oneMinusBeta1.mul(g))).sign();
        const decayed = p.mul(constant(1).sub(lr.mul(weightDecay)));
        return {
          expAvg: expAvg.mul(beta2).add(oneMinusBeta2.mul(g)),
          p: decayed.sub(lr.mul(direction)),
        };
      },
    },
  ],
});
