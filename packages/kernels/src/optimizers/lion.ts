import { type UpdateRule, updateRule } from "./rule.js";

/** Lion (Chen et al. 2023, algorithm 2), with decoupled weight decay. */
export const lionRule: UpdateRule = updateRule({
  name: "lion",
  state: { expAvg: "signed" },
  scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "weightDecay"],
  passes: [
    {
      wgsl: `let direction = sign(expAvg * beta1 + oneMinusBeta1 * g);
  expAvg = expAvg * beta2 + oneMinusBeta2 * g;
  p = p * (1.0 - lr * weightDecay) - lr * direction;`,
      update(e, s) {
        const direction = Math.sign(Math.fround(e.expAvg * s.beta1 + s.oneMinusBeta1 * e.g));
        e.expAvg = e.expAvg * s.beta2 + s.oneMinusBeta2 * e.g;
        e.p = e.p * (1 - s.lr * s.weightDecay) - s.lr * direction;
      },
    },
  ],
});
