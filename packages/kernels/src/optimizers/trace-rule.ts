import { type Part, type Term, variable } from "../formula/term.js";
import { type PassInputs, statesOf, type Terms, type UpdatePass, type UpdateRule } from "./rule.js";

/** The results of a pass, as terms. */
export interface PassTrace {
  /** New values of states and of `p`, by name. */
  readonly next: Terms;
  /** Terms of the totals. */
  readonly terms: readonly Term[];
}

/**
 * Calls the functions of a pass with variables, and returns the formulas.
 *
 * @throws TypeError for names that the rule does not declare, and for results that are no object.
 */
export function tracePass(rule: UpdateRule, index: number): PassTrace {
  const { update, totals, inputs } = rule.passes[index] as UpdatePass;
  const e: Terms = {
    ...termsOf(["g", "p", ...statesOf(rule), ...valuesOf(inputs)], { isUniform: false }),
    ...termsOf([...namesOfLaunch(rule), ...factorsOf(rule)], { isUniform: true }),
  };
  const what = `update rule "${rule.name}": pass ${index}`;
  const next = update ? given(update(named(e, what)), `${what}: update()`) : {};
  return { next, terms: totals?.terms(named({ ...e, ...next }, what)) ?? [] };
}

/** Calls `make` of the totals of a pass with variables, and returns the formulas of factors and state. */
export function traceTotals(rule: UpdateRule, index: number): Terms {
  const { totals } = rule.passes[index] as UpdatePass;
  if (!totals) return {};
  const { state = [] } = totals;
  const own = ["total0", "total1", "total2", "total3", "size", "rows", "columns"];
  const what = `update rule "${rule.name}": the totals of pass ${index}`;
  const names = namesOfLaunch(rule).concat(own, state);
  return given(totals.make(named(termsOf(names, { isUniform: true }), what)), `${what}: make()`);
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

/** Terms that throw a TypeError where a formula uses a name that is not among them. */
const named = (terms: Terms, what: string): Terms =>
  new Proxy(terms, {
    get(known, name) {
      const term = known[name as string];
      if (term === undefined)
        throw new TypeError(
          `${what} uses "${String(name)}", which the rule does not declare: there are ${Object.keys(known).join(", ")}`,
        );
      return term;
    },
  });

/** Drops undefined members of a result. Throws a TypeError where a function returned no object. */
function given(made: Partial<Terms>, what: string): Terms {
  if (typeof made !== "object" || made === null)
    throw new TypeError(`${what} returns no object: return the new values by name, such as { p }`);
  return Object.fromEntries(Object.entries(made).filter(([, term]) => term !== undefined)) as Terms;
}
