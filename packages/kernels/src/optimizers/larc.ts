import { select } from "../formula/term.js";
import type { Terms, UpdatePass, UpdateRule } from "./rule.js";
import { gatherTotals } from "./segment-gather.js";

/** Scalars that {@link larcRule} adds to those of the wrapped rule. */
export interface LarcScalars extends Readonly<Record<string, number>> {
  readonly larcTrust: number;
  readonly larcEps: number;
  readonly larcDecay: number;
  /** 1 where the adapted rate is at most `lr`, 0 where it multiplies `lr`. */
  readonly larcClips: number;
}

const adapted = new WeakMap<UpdateRule, UpdateRule>();

/**
 * Wraps a rule of one pass in apex's LARC (You et al. 2017): each parameter's gradient becomes `(g + decay p) · trust |p| /
 * (|g| + decay |p| + eps)`, the factor divided by `lr` and at most 1 where it clips. Where either norm is 0 the gradient does
 * not change.
 *
 * @throws TypeError for rules of several passes, which measure parameters themselves.
 */
export function larcRule(rule: UpdateRule): UpdateRule {
  const known = adapted.get(rule);
  if (known) return known;
  const [only] = rule.passes;
  if (!only || rule.passes.length > 1)
    throw new TypeError(
      `LARC cannot wrap ${rule.name}, which adapts each parameter's rate or norm itself: use it without LARC`,
    );
  const made: UpdateRule = {
    ...rule,
    name: `larc ${rule.name}`,
    scalars: [...rule.scalars, "larcTrust", "larcEps", "larcDecay", "larcClips"],
    gather: gatherTotals,
    passes: [
      measure,
      {
        ...only,
        update: (e: Terms<Name>) => {
          const gradient = e.g.add(e.larcAdded.mul(e.p)).mul(e.larcRate);
          return only.update?.({ ...e, g: gradient }) ?? {};
        },
      },
    ],
  };
  adapted.set(rule, made);
  return made;
}

type Name = "g" | "p" | "lr" | "first" | "larcAdded" | "larcRate";

const measure: UpdatePass = {
  totals: {
    terms: ({ p, g }: Terms<"p" | "g">) => [p.square(), g.square()],
    factors: ["larcRate", "larcAdded"],
    make({ total0, total1, lr, ...t }: Terms<MeasuredName>) {
      const isZero = total0.eq(0).or(total1.eq(0));
      const size = total0.sqrt();
      const norm = total1.sqrt().add(size.mul(t.larcDecay)).add(t.larcEps);
      const rate = t.larcTrust.mul(size).div(norm);
      const clipped = select(rate.lt(lr), rate.div(lr), 1);
      return {
        larcRate: select(isZero, 1, select(t.larcClips.eq(1), clipped, rate)),
        larcAdded: select(isZero, 0, t.larcDecay),
      };
    },
  },
};

type MeasuredName =
  | "total0"
  | "total1"
  | "lr"
  | "larcTrust"
  | "larcEps"
  | "larcDecay"
  | "larcClips";
