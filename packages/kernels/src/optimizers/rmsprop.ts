import { type RuleFamily, ruleFamily, type StateKind, updateRule } from "./rule.js";

interface RmspropChoices {
  readonly centered: boolean;
  readonly momentum: boolean;
}

/**
 * RMSprop (Hinton 2012; centered: Graves 2013) as torch.optim computes it, except for a variance that rounding makes
 * negative: it counts as 0, where torch gives NaN.
 */
export const rmspropRule: RuleFamily<RmspropChoices> = ruleFamily(({ centered, momentum }) =>
  updateRule({
    name: `rmsprop${centered ? " centered" : ""}${momentum ? " momentum" : ""}`,
    state: {
      squareAvg: "unsigned",
      ...(centered && { gradAvg: "signed" }),
      ...(momentum && { momentumBuffer: "signed" }),
    } as Record<"squareAvg" | "gradAvg" | "momentumBuffer", StateKind>,
    scalars: ["alpha", "oneMinusAlpha", "eps", "weightDecay", "momentum"],
    passes: [
      {
        wgsl: `g += weightDecay * p;
  squareAvg = squareAvg * alpha + oneMinusAlpha * (g * g);
  ${
    centered
      ? "gradAvg += oneMinusAlpha * (g - gradAvg);\n  let variance = max(squareAvg - gradAvg * gradAvg, vec4f());"
      : "let variance = squareAvg;"
  }
  let step = g / (sqrt(variance) + eps);
  ${momentum ? "momentumBuffer = momentumBuffer * momentum + step;\n  p -= lr * momentumBuffer;" : "p -= lr * step;"}`,
        update(e, s) {
          e.g += s.weightDecay * e.p;
          e.squareAvg = e.squareAvg * s.alpha + s.oneMinusAlpha * e.g * e.g;
          let variance = e.squareAvg;
          if (centered) {
            e.gradAvg += s.oneMinusAlpha * (e.g - e.gradAvg);
            variance = Math.max(variance - e.gradAvg * e.gradAvg, 0);
          }
          let step = e.g / (Math.sqrt(variance) + s.eps);
          if (momentum) {
            e.momentumBuffer = e.momentumBuffer * s.momentum + step;
            step = e.momentumBuffer;
          }
          e.p -= s.lr * step;
        },
      },
    ],
  }),
);
