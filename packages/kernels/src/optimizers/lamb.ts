import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";

/**
 * LAMB (You et al. 2020) by the rule of apex's FusedLAMB: each parameter steps by `lr · |p| / |update|`. Columns are
 * `1 / (1 - beta1^t)` and `1 / (1 - beta2^t)`. `beta3` is `1 - beta1` with averaging of gradients, else 1; `adapts` is 1
 * where the ratio applies. Gradients come clipped by their norm over all parameters.
 */
export const lambRule: RuleFamily<{ readonly decoupled: boolean }> = ruleFamily(({ decoupled }) => {
  const step = `(expAvg * correction1) / (sqrt(expAvgSq * correction2) + eps)${
    decoupled ? " + weightDecay * p" : ""
  }`;
  return updateRule({
    name: `lamb${decoupled ? "" : " l2"}`,
    state: { expAvg: "signed", expAvgSq: "unsigned" },
    scalars: ["beta1", "beta3", "beta2", "oneMinusBeta2", "eps", "weightDecay", "adapts"],
    columns: ["correction1", "correction2"],
    passes: [
      {
        wgsl: `${decoupled ? "let d = g;" : "let d = g + weightDecay * p;"}
  expAvg = expAvg * beta1 + beta3 * d;
  expAvgSq = expAvgSq * beta2 + oneMinusBeta2 * (d * d);
  let step = ${step};`,
        update(e, s) {
          const d = decoupled ? e.g : e.g + s.weightDecay * e.p;
          e.expAvg = e.expAvg * s.beta1 + s.beta3 * d;
          e.expAvgSq = e.expAvgSq * s.beta2 + s.oneMinusBeta2 * d * d;
        },
        totals: {
          terms: [
            { wgsl: "p * p", value: (e) => e.p * e.p },
            { wgsl: "step * step", value: (e, s) => stepOf(e, s) ** 2 },
          ],
          factors: ["ratio"],
          wgsl: `ratio = lr;
  if (adapts == 1.0 && total0 != 0.0 && total1 != 0.0) { ratio = lr * (sqrt(total0) / sqrt(total1)); }`,
          update(t, s) {
            const { total0, total1 } = t as { total0: number; total1: number };
            const adapts = s.adapts === 1 && total0 !== 0 && total1 !== 0;
            t.ratio = adapts ? s.lr * Math.sqrt(total0 / total1) : s.lr;
          },
        },
      },
      {
        wgsl: `p -= ratio * (${step});`,
        update(e, s) {
          e.p -= s.ratio * stepOf(e, s);
        },
      },
    ],
  });

  function stepOf(
    e: Record<"expAvg" | "expAvgSq" | "p", number>,
    s: Record<"correction1" | "correction2" | "eps" | "weightDecay", number>,
  ): number {
    const step = (e.expAvg * s.correction1) / (Math.sqrt(e.expAvgSq * s.correction2) + s.eps);
    return decoupled ? step + s.weightDecay * e.p : step;
  }
});
