import { constant, select, type Term } from "../formula/term.js";
import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { gatherTotals } from "./segment-gather.js";
import { withDecay } from "./weight-decay.js";

interface NovoGradChoices {
  /** Divides by the norm and decays before the moment, as the paper does, instead of after it. */
  readonly regInsideMoment: boolean;
  /** 2, or 0 for the largest magnitude. */
  readonly normType: 0 | 2;
}

/**
 * NovoGrad (Ginsburg et al. 2019) by the rule of apex's FusedNovoGrad: the second moment is one number a parameter, `gradNorm`,
 * kept as a norm. Columns are `1 / (1 - beta1^t)` and `1 / sqrt(1 - beta2^t)`, or 1. `beta3` is `1 - beta1` with averaging of
 * gradients, else 1; `initZero` is 1 where the average of norms starts from 0.
 */
export const novogradRule: RuleFamily<NovoGradChoices> = ruleFamily(
  ({ regInsideMoment, normType }) =>
    updateRule({
      name: `novograd ${normType}${regInsideMoment ? " inside" : ""}`,
      state: { expAvg: "signed" },
      scalars: ["beta1", "beta3", "beta2", "oneMinusBeta2", "eps", "weightDecay", "initZero"],
      columns: ["correction1", "correction2"],
      gather: gatherTotals,
      passes: [
        {
          totals: {
            fold: normType === 0 ? "max" : "sum",
            terms: ({ g }) => [normType === 0 ? g.abs() : g.square()],
            state: "gradNorm",
            factors: ["inverse"],
            make({ total0, gradNorm, first, initZero, beta2, oneMinusBeta2, ...t }) {
              const norm = normType === 0 ? total0 : total0.sqrt();
              const start = select(initZero.eq(1), 0, norm);
              const before = select(first.eq(1), start, gradNorm);
              const kept = beta2.mul(before);
              const added = oneMinusBeta2.mul(norm);
              const now =
                normType === 0 ? kept.add(added) : kept.mul(before).add(added.mul(norm)).sqrt();
              return {
                gradNorm: now,
                inverse: constant(1).div(now.mul(t.correction2).add(t.eps)),
              };
            },
          },
        },
        {
          update({ g, p, lr, beta1, beta3, inverse, weightDecay, correction1, ...e }) {
            const averaged = (x: Term): Term => e.expAvg.mul(beta1).add(beta3.mul(x));
            if (regInsideMoment) {
              const expAvg = averaged(withDecay(g.mul(inverse), weightDecay, p));
              return { expAvg, p: p.sub(lr.mul(correction1).mul(expAvg)) };
            }
            const expAvg = averaged(g);
            const step = withDecay(expAvg.mul(correction1).mul(inverse), weightDecay, p);
            return { expAvg, p: p.sub(lr.mul(step)) };
          },
        },
      ],
    }),
);
