import type { Domain } from "../domain.js";
import type { Expression } from "../elementwise.js";
import type { IntegerForms } from "../forms.js";
import { StripEvaluator } from "./strips.js";
import { Condition, type Part, type Term, variable } from "./term.js";
import { isArithmetic, variablesOf } from "./walk.js";
import { writeWgsl } from "./write-wgsl.js";

/** The properties of an expression besides its formula. */
export interface FormulaOptions {
  /** How many of the formula's parameters, the last ones, are runtime scalars. Default 0. */
  readonly scalars?: number;
  /** The exact function where some operands are integers. Default: none, and integers are refused. */
  readonly integers?: IntegerForms;
}

const operandName = (place: number): string => `x${place}`;
const scalarName = (place: number): string => `c${place}`;

/**
 * Makes an expression from a formula, which generates both WGSL and JavaScript. The parameters of `of` are the operands, followed by
 * the scalars. A condition returns a mask: uint32, 1 where it holds, else 0.
 *
 * @example
 * const silu = formula("silu", (x) => x.div(x.neg().exp().add(1)));
 */
export function formula(
  name: string,
  of: (...parameters: Term[]) => Part,
  { scalars = 0, integers }: FormulaOptions = {},
): Expression {
  const arity = of.length - scalars;
  const names = Array.from({ length: of.length }, (_, place) =>
    place < arity ? operandName(place) : scalarName(place - arity),
  );
  const root = of(...names.map((each, place) => variable(each, { isUniform: place >= arity })));
  const used = variablesOf([root]);
  const unused = names.find((each) => !used.has(each));
  if (unused !== undefined)
    throw new TypeError(`formula "${name}" does not use parameter ${names.indexOf(unused)}`);
  const result: Domain = root instanceof Condition ? "uint32" : "float";
  const written = writtenOf(name, root, names, arity);
  let evaluator: StripEvaluator | undefined;
  const single = Array.from({ length: arity + 1 }, () => new Float64Array(1));
  const expression: Expression = {
    name,
    arity,
    ...(scalars > 0 && { scalars }),
    ...(isArithmetic(root) && { isArithmetic: true }),
    ...(result !== "float" && { result }),
    ...(integers && { integers }),
    ...written,
    evaluate(x, c) {
      const [out, ...operands] = single as [Float64Array, ...Float64Array[]];
      for (let place = 0; place < arity; place++)
        (operands[place] as Float64Array)[0] = x[place] as number;
      expression.evaluateStrip?.(operands, c, out, 1);
      return out[0] as number;
    },
    evaluateStrip(x, c, out, count) {
      evaluator ??= new StripEvaluator([root]);
      for (let place = 0; place < arity; place++)
        evaluator.read(operandName(place), x[place] as Float64Array);
      const values: Record<string, number> = {};
      for (let place = 0; place < scalars; place++) values[scalarName(place)] = c[place] as number;
      evaluator.begin(values, count);
      evaluator.run(count);
      const strip = evaluator.result(0);
      for (let i = 0; i < count; i++) out[i] = strip[i] as number;
    },
  };
  return expression;
}

/** The WGSL of an expression: a function where an intermediate value is used more than once. */
function writtenOf(
  name: string,
  root: Part,
  names: readonly string[],
  arity: number,
): Pick<Expression, "functions" | "wgsl"> {
  const isMask = root instanceof Condition;
  const prefix = name.replace(/\W/g, "_").replace(/^\d/, "_$&");
  const write = (nameOf: (variable: string) => string) => writeWgsl([root], { prefix, nameOf });
  const finished = (value: string): string =>
    isMask ? `select(vec4u(0u), vec4u(1u), ${value})` : value;
  const { functions, statements, values } = write((variable) => variable);
  if (statements.length === 0)
    return {
      ...(functions && { functions }),
      wgsl: (x, c) =>
        finished(
          write((variable) => [...x, ...c][names.indexOf(variable)] as string).values[0] as string,
        ),
    };
  const parameters = names.map((each, place) => `${each}: ${place < arity ? "vec4f" : "f32"}`);
  return {
    functions: `${functions}
fn ${prefix}_value(${parameters.join(", ")}) -> ${isMask ? "vec4u" : "vec4f"} {
${statements.map((statement) => `  ${statement}\n`).join("")}  return ${finished(values[0] as string)};
}
`,
    wgsl: (x, c) => `${prefix}_value(${[...x, ...c].join(", ")})`,
  };
}
