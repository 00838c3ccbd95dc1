import { select } from "../formula/term.js";
import { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
import { withDecay } from "./weight-decay.js";

interface SGDChoices {
  readonly momentum: boolean;
  /** Adds weight decay to the step behind the momentum, as apex's `wd_after_momentum`. Default: to the gradient before it. */
  readonly decaysAfter?: true;
}

/**
 * Stochastic gradient descent as torch.optim.SGD computes it: the first applied step copies the gradient into the momentum
 * buffer, without dampening. Without momentum both places of weight decay are the same, and `decaysAfter` is left out.
 */
export const sgdRule: RuleFamily<SGDChoices> = ruleFamily(({ momentum, decaysAfter = false }) =>
  momentum
    ? updateRule({
        name: `sgd momentum${decaysAfter ? " decay after" : ""}`,
        state: { momentumBuffer: "signed" },
        scalars: ["momentum", "oneMinusDampening", "weightDecay", "nesterov"],
        passes: [
          {
            update({ g, p, lr, weightDecay, oneMinusDampening, ...e }) {
              const gradient = decaysAfter ? g : withDecay(g, weightDecay, p);
              const later = e.momentumBuffer.mul(e.momentum).add(oneMinusDampening.mul(gradient));
              const momentumBuffer = select(e.first.eq(1), gradient, later);
              const ahead = gradient.add(e.momentum.mul(momentumBuffer));
              const step = select(e.nesterov.eq(1), ahead, momentumBuffer);
              const decayed = decaysAfter ? withDecay(step, weightDecay, p) : step;
              return { momentumBuffer, p: p.sub(lr.mul(decayed)) };
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
