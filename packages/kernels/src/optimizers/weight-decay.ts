import { select, type Term } from "../formula/term.js";

/**
 * A gradient or step with weight decay added: `x + weightDecay · p`, and `x` itself where nothing decays. A sum with 0 · p would turn
 * infinite parameters, such as logits that are masked by −∞, into NaN.
 */
export const withDecay = (x: Term, weightDecay: Term, p: Term): Term =>
  select(weightDecay.eq(0), x, x.add(weightDecay.mul(p)));
