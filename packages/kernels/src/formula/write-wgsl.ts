import { type Operator, type Written, whole } from "./operators.js";
import { Condition, type Part } from "./term.js";
import { operandsOf, partsOf } from "./walk.js";

/** WGSL that computes some parts of a formula. */
export interface WrittenFormula {
  /** Declarations of the called functions. */
  readonly functions: string;
  /** A `let` for each value that is used more than once, in order. */
  readonly statements: readonly string[];
  /** An expression for each part. */
  readonly values: readonly string[];
}

/** Names in the written formula. */
export interface Writing {
  /** The prefix of the names of functions. */
  readonly prefix: string;
  /** The text of a variable. */
  nameOf(variable: string): string;
  /** Whether each of the parts gets a name of its own, a vector of four, so that variables may be assigned after all statements. */
  readonly names?: boolean;
}

/** Writes parts of a formula in WGSL, in the order in which they were made; shared operations are computed once. */
export function writeWgsl(
  roots: readonly Part[],
  { prefix, nameOf, names = false }: Writing,
): WrittenFormula {
  const parts = partsOf(roots);
  const isShared = sharedAmong(parts, roots);
  const functions = new Map<Operator, string>();
  const statements: string[] = [];
  const written = new Map<Part, Written>();

  const declare = (value: string): Written => {
    const name = `t${statements.length}`;
    statements.push(`let ${name} = ${value};`);
    return whole(name);
  };
  const nameOfFunctions = (operator: Operator): string => {
    let name = functions.get(operator);
    if (name === undefined) {
      const wanted = `${prefix}_${operator.name}`;
      const isTaken = [...functions.values()].includes(wanted);
      name = isTaken ? `${wanted}_${functions.size}` : wanted;
      functions.set(operator, name);
    }
    return name;
  };
  const write = (part: Part): Written => {
    const { origin, isUniform } = part;
    if (origin.kind === "variable") return whole(nameOf(origin.name));
    if (origin.kind === "constant") return literal(origin.inWgsl);
    const { operator, operands } = origin;
    const given = operands.map((operand, place) => {
      const own = written.get(operand) as Written;
      const isWidened = !isUniform && operand.isUniform && operator.alike?.includes(place);
      return isWidened ? widened(operand, own) : own;
    });
    const name = operator.functions ? nameOfFunctions(operator) : "";
    return operator.wgsl(given, !isUniform, name);
  };

  for (const part of parts) {
    const own = write(part);
    written.set(part, isShared(part) ? declare(own.text) : own);
  }
  const values = roots.map((root) => {
    const own = written.get(root) as Written;
    return names ? declare(root.isUniform ? widened(root, own).text : own.text).text : own.text;
  });
  return {
    functions: [...functions].map(([operator, name]) => operator.functions?.(name)).join(""),
    statements,
    values,
  };
}

/** Widens one number or condition to a vector of four. */
const widened = (part: Part, { text }: Written): Written =>
  whole(`${part instanceof Condition ? "vec4<bool>" : "vec4f"}(${text})`);

/** Returns whether an operation is used more than once, by others or as a result. */
function sharedAmong(parts: Iterable<Part>, roots: readonly Part[]): (part: Part) => boolean {
  const uses = new Map<Part, number>();
  const use = (part: Part): void => {
    uses.set(part, (uses.get(part) ?? 0) + 1);
  };
  for (const part of parts) operandsOf(part).forEach(use);
  roots.forEach(use);
  return (part) => part.origin.kind === "operation" && (uses.get(part) as number) > 1;
}

function literal(value: number): Written {
  const isNegative = value < 0 || Object.is(value, -0);
  const digits = String(Math.abs(value));
  const text = /^\d+$/.test(digits) ? `${digits}.0` : digits;
  return { text: isNegative ? `-${text}` : text, binding: isNegative ? 3 : 4 };
}
