import { select } from "../formula/term.js";
import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

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
            update({ g, p, lr, weightDecay, oneMinusDampening, ...e }) {
              const gradient = withDecay(g, weightDecay, p);
              const later = e.momentumBuffer.mul(e.momentum).add(oneMinusDampening.mul(gradient));
              const momentumBuffer = select(e.first.eq(1), gradient, later);
              const ahead = gradient.add(e.momentum.mul(momentumBuffer));
              const step = select(e.nesterov.eq(1), ahead, momentumBuffer);
              return { momentumBuffer, p: p.sub(lr.mul(step)) };
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
            update: ({ g, p, lr, weightDecay }) => ({
              p: p.sub(lr.mul(withDecay(g, weightDecay, p))),
            }),
          },
        ],
      }),
);
