import { averageOfSquares } from "./average-of-squares.js";
import { type RuleFamily, ruleFamily, type StateKind, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

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
        update({ g, p, lr, weightDecay, oneMinusAlpha, eps, ...e }) {
          const gradient = withDecay(g, weightDecay, p);
          const squareAvg = averageOfSquares(e.squareAvg, gradient, {
            keep: e.alpha,
            share: oneMinusAlpha,
          });
          const gradAvg = centered && e.gradAvg.add(oneMinusAlpha.mul(gradient.sub(e.gradAvg)));
          const variance = gradAvg ? squareAvg.sub(gradAvg.square()).max(0) : squareAvg;
          const step = gradient.div(variance.sqrt().add(eps));
          const momentumBuffer = momentum && e.momentumBuffer.mul(e.momentum).add(step);
          return {
            squareAvg,
            ...(gradAvg && { gradAvg }),
            ...(momentumBuffer && { momentumBuffer }),
            p: p.sub(lr.mul(momentumBuffer || step)),
          };
        },
      },
    ],
  }),
);
