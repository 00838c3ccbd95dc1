import { averageOfSquares } from "./average-of-squares.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

/** Adadelta (Zeiler 2012) as torch.optim computes it. */
export const adadeltaRule: UpdateRule = updateRule({
  name: "adadelta",
  state: { squareAvg: "unsigned", accDelta: "unsigned" },
  scalars: ["rho", "oneMinusRho", "eps", "weightDecay"],
  passes: [
    {
      update({ g, p, squareAvg, accDelta, lr, rho, oneMinusRho, eps, weightDecay }) {
        const shares = { keep: rho, share: oneMinusRho };
        const gradient = withDecay(g, weightDecay, p);
        const square = averageOfSquares(squareAvg, gradient, shares);
        const delta = accDelta.add(eps).sqrt().div(square.add(eps).sqrt()).mul(gradient);
        return {
          squareAvg: square,
          accDelta: averageOfSquares(accDelta, delta, shares),
          p: p.sub(lr.mul(delta)),
        };
      },
    },
  ],
});
