import { select, type Term } from "../formula/term.js";
import { averageOfSquares } from "./average-of-squares.js";
import { type RuleFamily, ruleFamily, type Terms, updateRule } from "./rule.js";
import { gatherTotals } from "./segment-gather.js";
import { withDecay } from "./weight-decay.js";

/**
 * LAMB (You et al. 2020) by the rule of apex's FusedLAMB: each parameter steps by `lr · |p| / |update|`. Columns are
 * `1 / (1 - beta1^t)` and `1 / (1 - beta2^t)`. `beta3` is `1 - beta1` with averaging of gradients, else 1; `adapts` is 1
 * where the ratio applies. Gradients come clipped by their norm over all parameters.
 */
export const lambRule: RuleFamily<{ readonly decoupled: boolean }> = ruleFamily(({ decoupled }) =>
  updateRule({
    name: `lamb${decoupled ? "" : " l2"}`,
    state: { expAvg: "signed", expAvgSq: "unsigned" },
    scalars: ["beta1", "beta3", "beta2", "oneMinusBeta2", "eps", "weightDecay", "adapts"],
    columns: ["correction1", "correction2"],
    gather: gatherTotals,
    passes: [
      {
        update({ g, p, expAvg, expAvgSq, beta1, beta2, beta3, oneMinusBeta2, weightDecay }) {
          const gradient = decoupled ? g : withDecay(g, weightDecay, p);
          return {
            expAvg: expAvg.mul(beta1).add(beta3.mul(gradient)),
            expAvgSq: averageOfSquares(expAvgSq, gradient, { keep: beta2, share: oneMinusBeta2 }),
          };
        },
        totals: {
          terms: (e) => [e.p.square(), stepOf(e, decoupled).square()],
          factors: ["ratio"],
          make({ total0, total1, lr, adapts }) {
            const isStill = adapts.eq(1).not().or(total0.eq(0)).or(total1.eq(0));
            return { ratio: select(isStill, lr, lr.mul(total0.sqrt().div(total1.sqrt()))) };
          },
        },
      },
      { update: (e) => ({ p: e.p.sub(e.ratio.mul(stepOf(e, decoupled))) }) },
    ],
  }),
);

function stepOf(
  e: Terms<"expAvg" | "expAvgSq" | "p" | "correction1" | "correction2" | "eps" | "weightDecay">,
  decoupled: boolean,
): Term {
  const deviation = e.expAvgSq.mul(e.correction2).sqrt().add(e.eps);
  const step = e.expAvg.mul(e.correction1).div(deviation);
  return decoupled ? withDecay(step, e.weightDecay, e.p) : step;
}
