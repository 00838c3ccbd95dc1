import { type UpdateRule, updateRule } from "./rule.js";

/** Adadelta (Zeiler 2012) as torch.optim computes it. */
export const adadeltaRule: UpdateRule = updateRule({
  name: "adadelta",
  state: { squareAvg: "unsigned", accDelta: "unsigned" },
  scalars: ["rho", "oneMinusRho", "eps", "weightDecay"],
  passes: [
    {
      wgsl: `g += weightDecay * p;
  squareAvg = squareAvg * rho + oneMinusRho * (g * g);
  let delta = sqrt(accDelta + eps) / sqrt(squareAvg + eps) * g;
  accDelta = accDelta * rho + oneMinusRho * (delta * delta);
  p -= lr * delta;`,
      update(e, s) {
        e.g += s.weightDecay * e.p;
        e.squareAvg = e.squareAvg * s.rho + s.oneMinusRho * e.g * e.g;
        const delta = (Math.sqrt(e.accDelta + s.eps) / Math.sqrt(e.squareAvg + s.eps)) * e.g;
        e.accDelta = e.accDelta * s.rho + s.oneMinusRho * delta * delta;
        e.p -= s.lr * delta;
      },
    },
  ],
});
