import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";

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
      passes: [
        {
          wgsl: "",
          update() {},
          totals: {
            fold: normType === 0 ? "max" : "sum",
            terms: [
              normType === 0
                ? { wgsl: "abs(g)", value: (e) => Math.abs(e.g) }
                : { wgsl: "g * g", value: (e) => e.g * e.g },
            ],
            state: "gradNorm",
            factors: ["inverse" as const],
            wgsl: `let norm = ${normType === 0 ? "total0" : "sqrt(total0)"};
  if (first == 1.0) { gradNorm = select(norm, 0.0, initZero == 1.0); }
  gradNorm = ${
    normType === 0
      ? "beta2 * gradNorm + oneMinusBeta2 * norm"
      : "sqrt(beta2 * gradNorm * gradNorm + oneMinusBeta2 * norm * norm)"
  };
  inverse = 1.0 / (gradNorm * correction2 + eps);`,
            update(t, s) {
              const norm = normType === 0 ? (t.total0 as number) : Math.sqrt(t.total0 as number);
              const before = s.first ? (s.initZero ? 0 : norm) : (t.gradNorm as number);
              t.gradNorm =
                normType === 0
                  ? s.beta2 * before + s.oneMinusBeta2 * norm
                  : Math.sqrt(s.beta2 * before * before + s.oneMinusBeta2 * norm * norm);
              t.inverse = 1 / (t.gradNorm * s.correction2 + s.eps);
            },
          },
        },
        regInsideMoment
          ? {
              wgsl: `expAvg = expAvg * beta1 + beta3 * (g * inverse + weightDecay * p);
  p -= (lr * correction1) * expAvg;`,
              update(e, s) {
                e.expAvg = e.expAvg * s.beta1 + s.beta3 * (e.g * s.inverse + s.weightDecay * e.p);
                e.p -= s.lr * s.correction1 * e.expAvg;
              },
            }
          : {
              wgsl: `expAvg = expAvg * beta1 + beta3 * g;
  p -= lr * ((expAvg * correction1) * inverse + weightDecay * p);`,
              update(e, s) {
                e.expAvg = e.expAvg * s.beta1 + s.beta3 * e.g;
                e.p -= s.lr * (e.expAvg * s.correction1 * s.inverse + s.weightDecay * e.p);
              },
            },
      ],
    }),
);
