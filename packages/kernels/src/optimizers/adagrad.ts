import { type UpdateRule, updateRule } from "./rule.js";

/**
 * Adagrad (Duchi et al. 2011) as torch.optim computes it. The column is `1 / (1 + (t - 1) lrDecay)`. Its sum only grows,
 * and fewer bits would lose small terms: it is float32 for every storage of moments.
 */
export const adagradRule: UpdateRule = updateRule({
  name: "adagrad",
  state: { sum: "exact" },
  scalars: ["eps", "weightDecay"],
  columns: ["decay"],
  passes: [
    {
      wgsl: `g += weightDecay * p;
  sum += g * g;
  p -= (lr * decay) * (g / (sqrt(sum) + eps));`,
      update(e, s) {
        e.g += s.weightDecay * e.p;
        e.sum += e.g * e.g;
        e.p -= (s.lr * s.decay * e.g) / (Math.sqrt(e.sum) + s.eps);
      },
    },
  ],
});
