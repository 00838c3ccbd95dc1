import type { KernelScalar } from "@halfstep/device";
import type { Domain } from "./domain.js";
import type { Expression } from "./elementwise.js";

/** The function of an expression for operands of certain domains. */
export interface Form {
  /** Domain of the result. */
  readonly result: Domain;
  /** The types of its runtime scalars. */
  readonly scalars: readonly KernelScalar["type"][];
  /** The scalars, from the expression's constants. Default: the constants. */
  scalarsOf?(constants: readonly number[]): readonly number[];
  /** WGSL functions that `wgsl` calls. Programs rename them where they use them. */
  readonly functions?: string;
  /** A quad of the result, from quads of the operands, each a vector of its domain, the scalars, and the bits drawn. */
  wgsl(x: readonly string[], c: readonly string[], bits: string): string;
  evaluate(x: ArrayLike<number>, c: ArrayLike<number>, bits: number): number;
  /** The same for several elements at once. */
  evaluateStrip?: Expression["evaluateStrip"];
}

/** Makes the {@link Form} of an expression for operands with at least one integer; undefined where there is none. */
export type IntegerForms = (domains: readonly Domain[]) => Form | undefined;

const forms = new WeakMap<Expression, Map<string, Form>>();

/**
 * The form of an expression for operands of these domains, the same object each time.
 *
 * @throws TypeError where it has none: integers are not converted to floats implicitly
 */
export function formOf(expression: Expression, domains: readonly Domain[]): Form {
  let known = forms.get(expression);
  if (!known) {
    known = new Map();
    forms.set(expression, known);
  }
  const key = domains.join();
  let form = known.get(key);
  if (!form) {
    form = makeForm(expression, domains);
    known.set(key, form);
  }
  return form;
}

function makeForm(expression: Expression, domains: readonly Domain[]): Form {
  const { name, result = "float", scalars = 0, functions } = expression;
  if (domains.every((domain) => domain === "float"))
    return {
      result,
      scalars: Array<"f32">(scalars).fill("f32"),
      ...(functions !== undefined && { functions }),
      wgsl: expression.wgsl.bind(expression),
      evaluate: expression.evaluate.bind(expression),
      ...(expression.evaluateStrip && {
        evaluateStrip: expression.evaluateStrip.bind(expression),
      }),
    };
  const form = expression.integers?.(domains);
  if (!form)
    throw new TypeError(
      `${name} does not compute with operands of (${domains.join(", ")}): cast integers to float32 first (fromInteger), or give the expression a form for them`,
    );
  return form;
}
