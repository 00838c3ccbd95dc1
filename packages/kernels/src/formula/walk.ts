import type { Part } from "./term.js";

/** The operands of a part; none for variables and constants. */
export const operandsOf = ({ origin }: Part): readonly Part[] =>
  origin.kind === "operation" ? origin.operands : [];

/** All parts that some parts use, each once and after its operands. */
export function partsOf(roots: Iterable<Part>): ReadonlySet<Part> {
  const parts = new Set<Part>();
  const visit = (part: Part): void => {
    if (parts.has(part)) return;
    for (const operand of operandsOf(part)) visit(operand);
    parts.add(part);
  };
  for (const root of roots) visit(root);
  return parts;
}

/** The names of the variables that some parts use. */
export function variablesOf(roots: Iterable<Part>): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { origin } of partsOf(roots)) if (origin.kind === "variable") names.add(origin.name);
  return names;
}

/** Whether a part only adds and multiplies its inputs. */
export const isArithmetic = (root: Part): boolean =>
  root.origin.kind === "operation" &&
  [...partsOf([root])].every(
    ({ origin }) => origin.kind !== "operation" || origin.operator.isArithmetic,
  );
