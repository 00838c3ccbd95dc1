import { type UpdateRule, updateRule } from "./rule.js";

/**
 * BertAdam of pytorch-pretrained-BERT 0.6.2: each parameter's gradient is clipped by its own norm, nothing corrects the bias,
 * and weight decay is part of the step. The column multiplies the learning rate. A `maxGradNorm` of 0 or less clips nothing.
 */
export const bertAdamRule: UpdateRule = updateRule({
  name: "bert-adam",
  state: { expAvg: "signed", expAvgSq: "unsigned" },
  scalars: [
    "beta1",
    "oneMinusBeta1",
    "beta2",
    "oneMinusBeta2",
    "eps",
    "weightDecay",
    "maxGradNorm",
  ],
  columns: ["multiplier"],
  passes: [
    {
      wgsl: "",
      update() {},
      totals: {
        terms: [{ wgsl: "g * g", value: (e) => e.g * e.g }],
        factors: ["clip"],
        wgsl: `clip = 1.0;
  if (maxGradNorm > 0.0) { clip = min(maxGradNorm / (sqrt(total0) + 1e-6), 1.0); }`,
        update(t, s) {
          const norm = Math.sqrt(t.total0 as number);
          t.clip = s.maxGradNorm > 0 ? Math.min(s.maxGradNorm / (norm + 1e-6), 1) : 1;
        },
      },
    },
    {
      wgsl: `g *= clip;
  expAvg = expAvg * beta1 + oneMinusBeta1 * g;
  expAvgSq = expAvgSq * beta2 + oneMinusBeta2 * (g * g);
  p -= (lr * multiplier) * (expAvg / (sqrt(expAvgSq) + eps) + weightDecay * p);`,
      update(e, s) {
        e.g *= s.clip;
        e.expAvg = e.expAvg * s.beta1 + s.oneMinusBeta1 * e.g;
        e.expAvgSq = e.expAvgSq * s.beta2 + s.oneMinusBeta2 * e.g * e.g;
        const step = e.expAvg / (Math.sqrt(e.expAvgSq) + s.eps) + s.weightDecay * e.p;
        e.p -= s.lr * s.multiplier * step;
      },
    },
  ],
});
