import { initialScaleState, type ScaleRule } from "../src/index.js";
import { nextScale } from "../src/rule.js";

/** The scale after each step of a trace, `"."` a clean step and `"!"` an overflow, and whether it should have backed off and could not. */
export function outcomesOf(
  rule: ScaleRule,
  trace: string | readonly boolean[],
): [scale: number, isCollapse: boolean][] {
  const found = typeof trace === "string" ? [...trace].map((step) => step === "!") : trace;
  let state = initialScaleState(rule);
  return found.map((foundInf) => {
    const next = nextScale(state, foundInf, rule);
    state = next.state;
    return [state.scale, next.isCollapse];
  });
}
