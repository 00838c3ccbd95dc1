import { select } from "../formula/term.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { single } from "./single.js";
import { withDecay } from "./weight-decay.js";

/**
 * Rprop (Riedmiller and Braun 1993) as torch.optim computes it: each parameter has a step size, which grows while its gradient keeps its
 * sign. Of the gradient before only the sign is kept, which every format of moments holds exactly; 0 where the sign had changed.
 */
export const rpropRule: UpdateRule = updateRule({
  name: "rprop",
  state: { prev: "signed", stepSize: "exact" },
  scalars: ["etaMinus", "etaPlus", "smallest", "largest", "weightDecay"],
  passes: [
    {
      update({ g, p, prev, etaMinus, etaPlus, smallest, largest, weightDecay, ...e }) {
        const direction = single(withDecay(g, weightDecay, p)).sign();
        const agreement = direction.mul(prev);
        const turned = agreement.lt(0);
        const factor = select(agreement.gt(0), etaPlus, select(turned, etaMinus, 1));
        const stepSize = e.stepSize.mul(factor).max(smallest).min(largest);
        const taken = select(turned, 0, direction);
        return { prev: taken, stepSize, p: p.sub(taken.mul(stepSize)) };
      },
    },
  ],
});
