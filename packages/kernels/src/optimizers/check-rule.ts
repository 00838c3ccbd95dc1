import { shown } from "../attributes.js";
import { Term } from "../formula/term.js";
import { variablesOf } from "../formula/walk.js";
import { drawScalars } from "./draws.js";
import { type StateKind, statesOf, type UpdateRule } from "./rule.js";
import { factorsOf, rootsOf, tracePass, traceTotals } from "./trace-rule.js";

/** Names that generated passes and kernels use. A rule with such a name would get the wrong value on one of the targets. */
const reserved: ReadonlySet<string> = new Set([
  ...["g", "p", "lr", "first", "end", "sign", "control", "gradients", "values", "chunks"],
  ...["partials", "factors", "segments", "at", "views", "q", "s", "size", "rows", "columns"],
  ...drawScalars.map(({ name }) => name),
]);

const checked = new WeakSet<UpdateRule>();

const stateKinds: readonly StateKind[] = ["signed", "unsigned", "exact", "transient"];

/**
 * Throws a TypeError where a rule would train nothing, or declares a state that it does not keep. It also throws where a rule could differ
 * between targets: duplicate, unknown or reserved names, too many names of a kind, or a factor in a pass that runs before the factor is
 * computed. Checks each rule once.
 */
export function checkRule(rule: UpdateRule): void {
  if (checked.has(rule)) return;
  const { columns = [], passes, scalars } = rule;
  const refuse = (what: string): never => {
    throw new TypeError(`update rule "${rule.name}": ${what}`);
  };
  const atMost = (what: string, all: readonly unknown[], most: number): void => {
    if (all.length > most) refuse(`${what}: there is room for ${most}, and it has ${all.length}`);
  };
  if (!Array.isArray(passes) || passes.length === 0)
    refuse("it has no passes, and would train nothing: give it one that returns p");
  for (const [name, kind] of Object.entries(rule.state))
    if (!stateKinds.includes(kind))
      refuse(
        `the state "${name}" is of kind ${shown(kind)}: choose one of ${stateKinds.join(", ")}`,
      );
  atMost("columns of the rate table", columns, 3);
  const all = [...statesOf(rule), ...scalars, ...columns];
  for (const [index, { totals }] of passes.entries()) {
    if (!totals) continue;
    if (!rule.gather) refuse(`pass ${index} has totals: give the rule gather: gatherTotals`);
    atMost("factors of a pass", totals.factors, 4);
    if (totals.state !== undefined) all.push(totals.state);
  }
  const inputs = new Set(passes.flatMap(({ inputs }) => inputs?.values ?? []));
  const factors = new Set(factorsOf(rule));
  const own = [...all, ...inputs, ...factors];
  for (const [i, name] of own.entries()) {
    if (!/^[A-Za-z]\w*$/.test(name)) refuse(`"${name}" is no name that WGSL can have`);
    if (reserved.has(name) || /^(total|t)\d+$/.test(name))
      refuse(`"${name}" is a name that every rule's code has already: choose another`);
    if (own.indexOf(name) < i) refuse(`"${name}" names two things: choose another name for one`);
  }
  let made: readonly string[] = [];
  const kept = new Set<string>();
  for (const [index, { totals }] of passes.entries()) {
    const trace = tracePass(rule, index);
    const changed = new Set(["p", ...statesOf(rule)]);
    for (const [name, term] of Object.entries(trace.next)) {
      if (!changed.has(name)) refuse(`pass ${index} changes "${name}", which is no state`);
      if (!(term instanceof Term)) refuse(`pass ${index} makes no term of "${name}"`);
      kept.add(name);
    }
    atMost("terms of a pass", trace.terms, 4);
    const used = variablesOf(rootsOf(trace));
    for (const name of factors)
      if (used.has(name) && !made.includes(name))
        refuse(`pass ${index} uses the factor "${name}", which no pass before it makes last`);
    const results = new Set([...(totals?.factors ?? []), totals?.state]);
    for (const [name, term] of Object.entries(traceTotals(rule, index))) {
      if (!results.has(name)) refuse(`pass ${index} makes "${name}", which is no factor of it`);
      if (!(term instanceof Term && term.isUniform))
        refuse(`pass ${index} makes no single number of "${name}"`);
      kept.add(name);
    }
    if (totals?.state !== undefined && !kept.has(totals.state))
      refuse(`make() of pass ${index} does not return the state "${totals.state}"`);
    made = totals?.factors ?? made;
  }
  for (const name of ["p", ...statesOf(rule)])
    if (!kept.has(name))
      refuse(
        `no pass returns ${name === "p" ? "p, so that it would train nothing" : `the state "${name}"`}: return its new value from update()`,
      );
  checked.add(rule);
}

/**
 * Throws a TypeError unless the values are exactly those of the scalars that a rule declares. For a missing one, WGSL would read zero
 * and JavaScript `undefined`.
 */
export function checkRuleScalars(rule: UpdateRule, values: Readonly<Record<string, number>>): void {
  for (const name of rule.scalars)
    if (values[name] === undefined)
      throw new TypeError(
        `update rule "${rule.name}" declares the scalar "${name}", but got no value for it: add it to what scalars() returns`,
      );
  let given = 0;
  for (const _ in values) given++;
  let drawn = 0;
  for (const { name } of drawScalars) if (values[name] !== undefined) drawn++;
  // As many names as are known: there is no other.
  if (given === rule.scalars.length + drawn) return;
  for (const name in values)
    if (!rule.scalars.includes(name) && !drawScalars.some((scalar) => scalar.name === name))
      throw new TypeError(
        `update rule "${rule.name}" declares no scalar "${name}": it has ${rule.scalars.join(", ") || "none"}`,
      );
}
