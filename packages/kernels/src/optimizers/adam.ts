import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";

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
          wgsl: `${decoupled ? "" : "g += weightDecay * p;\n  "}expAvg += oneMinusBeta1 * (g - expAvg);
  expAvgSq = expAvgSq * beta2 + oneMinusBeta2 * (g * g);
  ${
    amsgrad
      ? "maxExpAvgSq = select(expAvgSq, maxExpAvgSq, maxExpAvgSq > expAvgSq);\n  let u = maxExpAvgSq;"
      : "let u = expAvgSq;"
  }
  p = p${decoupled ? " * (1.0 - lr * weightDecay)" : ""} - (lr * correction1) * (expAvg / (sqrt(u) * correction2 + eps));`,
          update(e, s) {
            if (!decoupled) e.g += s.weightDecay * e.p;
            e.expAvg += s.oneMinusBeta1 * (e.g - e.expAvg);
            e.expAvgSq = e.expAvgSq * s.beta2 + s.oneMinusBeta2 * e.g * e.g;
            let u = e.expAvgSq;
            if (amsgrad) {
              if (!(e.maxExpAvgSq > u)) e.maxExpAvgSq = u;
              u = e.maxExpAvgSq;
            }
            const decayed = decoupled ? e.p * (1 - s.lr * s.weightDecay) : e.p;
            e.p =
              decayed - (s.lr * s.correction1 * e.expAvg) / (Math.sqrt(u) * s.correction2 + s.eps);
          },
        },
      ],
    }),
  );
