import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";

/**
 * Stochastic gradient descent as torch.optim.SGD computes it: the first applied step copies the gradient into the momentum
 * buffer, without dampening.
 */
export const sgdRule: RuleFamily<{ readonly momentum: boolean }> = ruleFamily(({ momentum }) =>
  momentum
    ? updateRule({
        name: "sgd momentum",
        state: { momentumBuffer: "signed" },
        scalars: ["momentum", "oneMinusDampening", "weightDecay", "nesterov"],
        passes: [
          {
            wgsl: `g += weightDecay * p;
  if (first == 1.0) { momentumBuffer = g; }
  else { momentumBuffer = momentumBuffer * momentum + oneMinusDampening * g; }
  if (nesterov == 1.0) { g += momentum * momentumBuffer; } else { g = momentumBuffer; }
  p -= lr * g;`,
            update(e, s) {
              e.g += s.weightDecay * e.p;
              e.momentumBuffer = s.first
                ? e.g
                : e.momentumBuffer * s.momentum + s.oneMinusDampening * e.g;
              e.g = s.nesterov ? e.g + s.momentum * e.momentumBuffer : e.momentumBuffer;
              e.p -= s.lr * e.g;
            },
          },
        ],
      })
    : updateRule({
        name: "sgd",
        state: {},
        // Only the other rule uses the first three: an optimizer passes the same scalars to both.
        scalars: ["momentum", "oneMinusDampening", "nesterov", "weightDecay"],
        passes: [
          {
            wgsl: "g += weightDecay * p;\n  p -= lr * g;",
            update(e, s) {
              e.p -= s.lr * (e.g + s.weightDecay * e.p);
            },
          },
        ],
      }),
);
