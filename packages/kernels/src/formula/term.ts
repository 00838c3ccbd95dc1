import * as operators from "./operators.js";

type Operator = operators.Operator;

/** The origin of a part of a formula: a variable, a constant, or an operator with operands. */
export type Origin =
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "constant"; readonly value: number; readonly inWgsl: number }
  | {
      readonly kind: "operation";
      readonly operator: Operator;
      readonly operands: readonly Part[];
    };

/** A part of a formula. The same object is the same value, and is computed once. */
export abstract class Part {
  readonly origin: Origin;
  /** Whether it is one number for the whole launch instead of one for each element. */
  readonly isUniform: boolean;

  constructor(origin: Origin, isUniform: boolean) {
    this.origin = origin;
    this.isUniform = isUniform;
  }
}

/**
 * A number in a formula, from which both WGSL and JavaScript are generated. Operations return new terms, and compute in the order in
 * which they are written.
 */
export class Term extends Part {
  add(other: Term | number): Term {
    return term(operators.add, this, other);
  }
  sub(other: Term | number): Term {
    return term(operators.sub, this, other);
  }
  mul(other: Term | number): Term {
    return term(operators.mul, this, other);
  }
  div(other: Term | number): Term {
    return term(operators.div, this, other);
  }
  /** −x. */
  neg(): Term {
    return term(operators.neg, this);
  }
  abs(): Term {
    return term(operators.abs, this);
  }
  /** −1, 0 or 1. NaN and zeros stay as they are. */
  sign(): Term {
    return select(this.gt(0), 1, select(this.lt(0), -1, this));
  }
  /** x², computing x once. */
  square(): Term {
    return this.mul(this);
  }
  sqrt(): Term {
    return term(operators.sqrt, this);
  }
  /** 1 / √x. */
  rsqrt(): Term {
    return term(operators.rsqrt, this);
  }
  /** eˣ. Adapters may lose NaN. */
  exp(): Term {
    return term(operators.exp, this);
  }
  floor(): Term {
    return term(operators.floor, this);
  }
  ceil(): Term {
    return term(operators.ceil, this);
  }
  /** The nearest whole number; ties go to the even one. */
  round(): Term {
    return term(operators.round, this);
  }
  /** The smaller number. Adapters may lose NaN. */
  min(other: Term | number): Term {
    return term(operators.min, this, other);
  }
  /** The larger number. Adapters may lose NaN. */
  max(other: Term | number): Term {
    return term(operators.max, this, other);
  }
  /** Whether x < y. As for all comparisons, the result for NaN depends on the adapter: test {@link isNan} too. */
  lt(other: Term | number): Condition {
    return condition(operators.lt, this, other);
  }
  le(other: Term | number): Condition {
    return condition(operators.le, this, other);
  }
  gt(other: Term | number): Condition {
    return condition(operators.gt, this, other);
  }
  ge(other: Term | number): Condition {
    return condition(operators.ge, this, other);
  }
  eq(other: Term | number): Condition {
    return condition(operators.eq, this, other);
  }
  /** Whether its bits are those of a NaN. */
  isNan(): Condition {
    return condition(operators.hasNanBits, this);
  }
  /** Whether its bits are neither those of an infinity nor of a NaN. */
  isFinite(): Condition {
    return condition(operators.hasFiniteBits, this);
  }
}

/** A condition in a formula. */
export class Condition extends Part {
  and(other: Condition): Condition {
    return condition(operators.and, this, other);
  }
  or(other: Condition): Condition {
    return condition(operators.or, this, other);
  }
  not(): Condition {
    return condition(operators.not, this);
  }
}

/** A constant in a formula. `inWgsl` replaces it in WGSL, where it is rounded to float32. */
export function constant(value: number, inWgsl: number = value): Term {
  if (!Number.isFinite(inWgsl))
    throw new RangeError(`a formula has no constant for ${inWgsl}: WGSL cannot write it`);
  return new Term({ kind: "constant", value, inWgsl }, true);
}

/** A variable of a formula: one number for each element, or one for the whole launch. */
export const variable = (name: string, { isUniform }: { readonly isUniform: boolean }): Term =>
  new Term({ kind: "variable", name }, isUniform);

/** `a` where the condition holds, else `b`; the other one may have any value. */
export const select = (holds: Condition, a: Term | number, b: Term | number): Term =>
  term(operators.select, holds, a, b);

/**
 * A function written by hand in WGSL and JavaScript, because float32 and float64 need different formulas or because it tests bits. The
 * names of its WGSL functions end with `name`.
 */
export function leaf(definition: {
  readonly name: string;
  /**
   * WGSL functions: `fn NAME(x: vec4f, …) -> vec4f`, and others whose names begin with NAME.
   *
   * @param name the name of the function to call
   */
  functions(name: string): string;
  /** The same for one element. */
  evaluate(a: number, b: number, c: number): number;
  /** The number of operands. Default 1. */
  readonly arity?: 1 | 2 | 3;
  /** How many of the operands, the last ones, are `f32`: one number for the whole launch. Default 0. */
  readonly scalars?: number;
}): (...operands: readonly (Term | number)[]) => Term {
  const { name, arity = 1, scalars = 0, functions, evaluate } = definition;
  const operator: Operator = {
    name,
    functions,
    wgsl: (operands, _, called) => operators.whole(`${called}(${operators.listed(operands)})`),
    alike: Array.from({ length: arity - scalars }, (_, i) => i),
    isQuad: true,
    run: runOf(evaluate),
  };
  return (...operands) => {
    if (operands.length !== arity)
      throw new TypeError(`${name} takes ${arity} operands, not ${operands.length}`);
    const made = term(operator, ...operands);
    const { operands: parts } = made.origin as Origin & { readonly kind: "operation" };
    if (parts.slice(arity - scalars).some((part) => !part.isUniform))
      throw new TypeError(`${name}: its last ${scalars} operands are one number for a launch`);
    return made;
  };
}

/**
 * A test of one number written by hand in WGSL and JavaScript, because it tests bits. The member `wgsl` returns an expression of type
 * `vec4<bool>`.
 */
export function predicate(definition: {
  wgsl(x: string): string;
  holds(x: number): boolean;
}): (x: Term) => Condition {
  const { wgsl, holds } = definition;
  const operator: Operator = {
    wgsl: ([x]) => ({ text: wgsl(operators.atom(x as operators.Written)), binding: 0 }),
    alike: [0],
    isQuad: true,
    run: runOf((x) => (holds(x) ? 1 : 0)),
  };
  return (x) => condition(operator, x);
}

const runOf =
  (evaluate: (a: number, b: number, c: number) => number): Operator["run"] =>
  (out, count, a, b, c) => {
    for (let i = 0; i < count; i++)
      out[i] = evaluate(a[i] as number, b[i] as number, c[i] as number);
  };

const term = (operator: Operator, ...operands: readonly (Part | number)[]): Term =>
  new Term(...operation(operator, operands));

const condition = (operator: Operator, ...operands: readonly (Part | number)[]): Condition =>
  new Condition(...operation(operator, operands));

function operation(
  operator: Operator,
  operands: readonly (Part | number)[],
): [origin: Origin, isUniform: boolean] {
  const parts = operands.map((operand) => {
    if (operand instanceof Part) return operand;
    if (typeof operand === "number") return constant(operand);
    throw new TypeError(`a formula is made of terms and numbers, not of ${String(operand)}`);
  });
  const isUniform = !operator.isQuad && parts.every((part) => part.isUniform);
  return [{ kind: "operation", operator, operands: parts }, isUniform];
}
