import type { KernelBinding, KernelView } from "@halfstep/device";

/**
 * The storage of a state of a rule, one number for each element:
 *
 * - `"signed"`, `"unsigned"`: moments, in float32, bfloat16 or 8 bits; the sign tells which 8-bit map;
 * - `"exact"`: always float32, for sums that only grow;
 * - `"transient"`: float32 scratch of one step.
 */
export type StateKind = "signed" | "unsigned" | "exact" | "transient";

/** Numbers by name. */
export type Numbers<Name extends string = string> = Record<Name, number>;

/** What every pass can use besides the names of its rule. */
type ControlName = "lr" | "first";

/** A quantity that is summed over each segment: a WGSL `vec4f` expression of the pass's variables, and the same in JavaScript. */
export interface SegmentTerm<State extends string, Value extends string> {
  readonly wgsl: string;
  value(e: Numbers<State | "g" | "p">, s: Numbers<Value | ControlName>): number;
}

/**
 * Totals over each segment after a pass, for the factors of later passes. The code may use the totals `total0` … `total3`, the
 * segment's `size`, `rows` and `columns` (its last axis; 1 row for a vector) as f32, the control and scalars of the rule, and `state`,
 * one persistent f32 for each segment. It assigns `factors` and `state`.
 */
export interface SegmentTotals<State extends string, Value extends string> {
  /** Default "sum". The maximum is of values that are not negative. */
  readonly fold?: "sum" | "max";
  /** One to four. */
  readonly terms: readonly SegmentTerm<State, Value>[];
  /** Name of the float32 that each segment keeps from step to step. */
  readonly state?: string;
  /** One to four names. */
  readonly factors: readonly Value[];
  readonly wgsl: string;
  update(segment: Numbers, s: Numbers<Value | ControlName>): void;
}

/** Numbers that a pass reads from other places than its own element. Such a pass always iterates over segments. */
export interface PassInputs {
  /** Read-only; `launchUpdate` takes them from the operands by name. */
  readonly bindings: readonly KernelBinding[];
  /** Statements that declare `vec4f` names for the pass, from the quad `q` and the segment `record.z`. */
  readonly wgsl: string;
  /** Sets the same names for the element at `index` of the flat buffer. */
  load(
    views: Readonly<Record<string, KernelView>>,
    place: { readonly index: number; readonly segment: number },
    e: Numbers,
  ): void;
}

/** One pass over the elements. It reads the names that its WGSL uses, and writes those that it assigns. */
export interface UpdatePass<State extends string = string, Value extends string = string> {
  /**
   * Statements over `vec4f`: `g`, the gradient; `p`, the parameter in float32; the states; `lr`, `first` (1 in the first
   * applied step, else 0), scalars, columns and factors (`f32`) by name.
   */
  readonly wgsl: string;
  /** The same for one element. */
  update(e: Numbers<State | "g" | "p">, s: Numbers<Value | ControlName>): void;
  readonly totals?: SegmentTotals<State, Value>;
  readonly inputs?: PassInputs;
}

/**
 * An optimizer as data. The generator combines it with a storage of parameters and of moments; see decision 0015. Rules are identified
 * by their objects.
 */
export interface UpdateRule<State extends string = string, Value extends string = string> {
  /** For people, with every choice that changes the code. */
  readonly name: string;
  readonly state: Readonly<Record<State, StateKind>>;
  /** float32 numbers that may change from step to step. */
  readonly scalars: readonly Value[];
  /** Names of up to three columns of the rate table, which hold a number for each applied step. */
  readonly columns?: readonly Value[];
  readonly passes: readonly UpdatePass<State, Value>[];
}

/** Makes a rule, and checks the names in its code against those that it declares. */
export const updateRule = <State extends string, Value extends string>(
  rule: UpdateRule<State, Value>,
): UpdateRule => rule as unknown as UpdateRule;

/** Rules that differ by choices which change their code. */
export type RuleFamily<Choices extends object> = (choices: Choices) => UpdateRule;

/** Makes one rule for each set of choices; sets with equal members share a rule. */
export function ruleFamily<Choices extends object>(
  make: (choices: Choices) => UpdateRule,
): RuleFamily<Choices> {
  const made: { readonly choices: Choices; readonly rule: UpdateRule }[] = [];
  return (choices) => {
    const known = made.find((one) => haveEqualMembers(one.choices, choices));
    if (known) return known.rule;
    const rule = make(choices);
    made.push({ choices: { ...choices }, rule });
    return rule;
  };
}

function haveEqualMembers<Choices extends object>(a: Choices, b: Choices): boolean {
  const names = Object.keys({ ...a, ...b }) as (keyof Choices)[];
  return names.every((name) => Object.is(a[name], b[name]));
}

/** Names of a rule's states that are stored for each element. */
export const statesOf = (rule: UpdateRule): readonly string[] => Object.keys(rule.state);

/** True where `code` uses `name` as a word. */
export const names = (code: string, name: string): boolean => wordOf(name).test(code);

/** True where `code` assigns `name`. */
export const assigns = (code: string, name: string): boolean =>
  new RegExp(`(?<![\\w.])${name}\\s*[-+*/]?=(?!=)`).test(code);

const words = new Map<string, RegExp>();

function wordOf(name: string): RegExp {
  let word = words.get(name);
  if (!word) {
    word = new RegExp(`(?<![\\w.])${name}\\b`);
    words.set(name, word);
  }
  return word;
}
