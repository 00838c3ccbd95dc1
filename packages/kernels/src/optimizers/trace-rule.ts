import { type Part, type Term, variable } from "../formula/term.js";
import { type PassInputs, statesOf, type Terms, type UpdatePass, type UpdateRule } from "./rule.js";

/** The results of a pass, as terms. */
export interface PassTrace {
  /** New values of states and of `p`, by name. */
  readonly next: Terms;
  /** Terms of the totals. */
  readonly terms: readonly Term[];
}

/** Calls the functions of a pass with variables, and returns the formulas. */
export function tracePass(rule: UpdateRule, index: number): PassTrace {
  const { update, totals, inputs } = rule.passes[index] as UpdatePass;
  const e: Terms = {
    ...termsOf(["g", "p", ...statesOf(rule), ...valuesOf(inputs)], { isUniform: false }),
    ...termsOf([...namesOfLaunch(rule), ...factorsOf(rule)], { isUniform: true }),
  };
  const next = update ? given(update(e)) : {};
  return { next, terms: totals?.terms({ ...e, ...next }) ?? [] };
}

/** Calls `make` of the totals of a pass with variables, and returns the formulas of factors and state. */
export function traceTotals(rule: UpdateRule, index: number): Terms {
  const { totals } = rule.passes[index] as UpdatePass;
  if (!totals) return {};
  const { state = [] } = totals;
  const own = ["total0", "total1", "total2", "total3", "size", "rows", "columns"];
  return given(totals.make(termsOf(namesOfLaunch(rule).concat(own, state), { isUniform: true })));
}

/** All results of a pass: first the new values, then the terms of totals. */
export const rootsOf = ({ next, terms }: PassTrace): readonly Part[] => [
  ...Object.values(next),
  ...terms,
];

/** All factors of a rule. */
export const factorsOf = ({ passes }: UpdateRule): readonly string[] =>
  passes.flatMap(({ totals }) => totals?.factors ?? []);

const namesOfLaunch = ({ scalars, columns = [] }: UpdateRule): string[] => [
  ...["lr", "first"],
  ...scalars,
  ...columns,
];

const valuesOf = (inputs: PassInputs | undefined): readonly string[] => inputs?.values ?? [];

const termsOf = (names: readonly string[], of: { readonly isUniform: boolean }): Terms =>
  Object.fromEntries(names.map((name) => [name, variable(name, of)]));

/** Drops undefined members of a result. */
const given = (made: Partial<Terms>): Terms =>
  Object.fromEntries(Object.entries(made).filter(([, term]) => term !== undefined)) as Terms;
