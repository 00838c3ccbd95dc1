import type { Numbers, UpdatePass, UpdateRule } from "./rule.js";

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
    passes: [
      measure,
      {
        wgsl: `g = (g + larcAdded * p) * larcRate;\n  ${only.wgsl}`,
        update(e: Numbers<"g" | "p">, s: Numbers) {
          e.g = (e.g + (s.larcAdded as number) * e.p) * (s.larcRate as number);
          only.update(e, s as Numbers<"lr" | "first">);
        },
      },
    ],
  };
  adapted.set(rule, made);
  return made;
}

const measure: UpdatePass = {
  wgsl: "",
  update() {},
  totals: {
    terms: [
      { wgsl: "p * p", value: (e: Numbers<"p">) => e.p * e.p },
      { wgsl: "g * g", value: (e: Numbers<"g">) => e.g * e.g },
    ],
    factors: ["larcRate", "larcAdded"],
    wgsl: `larcRate = 1.0;
  if (total0 != 0.0 && total1 != 0.0) {
    let size_p = sqrt(total0);
    larcRate = larcTrust * size_p / (sqrt(total1) + size_p * larcDecay + larcEps);
    larcAdded = larcDecay;
    if (larcClips == 1.0) {
      if (larcRate < lr) { larcRate = larcRate / lr; } else { larcRate = 1.0; }
    }
  }`,
    update(t, s: Numbers<"lr" | "larcTrust" | "larcDecay" | "larcEps" | "larcClips">) {
      const { total0, total1 } = t as { total0: number; total1: number };
      const { larcTrust, larcDecay, larcEps, larcClips, lr } = s;
      t.larcRate = 1;
      t.larcAdded = 0;
      if (total0 === 0 || total1 === 0) return;
      const size = Math.sqrt(total0);
      const rate = (larcTrust * size) / (Math.sqrt(total1) + size * larcDecay + larcEps);
      t.larcAdded = larcDecay;
      t.larcRate = larcClips === 1 ? (rate < lr ? rate / lr : 1) : rate;
    },
  },
};
