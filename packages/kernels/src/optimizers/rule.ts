import type { Kernel, KernelBinding, KernelView } from "@halfstep/device";
import type { Term } from "../formula/term.js";

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

/** Terms of formulas by name. */
export type Terms<Name extends string = string> = Readonly<Record<Name, Term>>;

/** Names in all formulas of a rule besides its own: the learning rate, and 1 in the first applied step, else 0. */
type ControlName = "lr" | "first";

/** Names in a pass: the gradient `g`, the parameter `p`, states and inputs; scalars, columns and factors, which are single numbers. */
type PassName<State extends string, Value extends string> = State | Value | ControlName | "g" | "p";

/** Totals over each segment after a pass, for the factors of later passes. */
export interface SegmentTotals<State extends string = string, Value extends string = string> {
  /** Default "sum". The maximum is of values that are not negative. */
  readonly fold?: "sum" | "max";
  /** One to four quantities to add up. States and `p` are those after the pass. */
  terms(e: Terms<PassName<State, Value>>): readonly Term[];
  /** Name of the float32 that each segment keeps from step to step. */
  readonly state?: Value;
  /** One to four names. Factors that `make` leaves out are 0. */
  readonly factors: readonly Value[];
  /**
   * Computes the factors and the new state from the totals `total0` … `total3`, the segment's `size`, `rows` and `columns` (its last
   * axis; 1 row for a vector), the state, scalars and columns of the rate table.
   */
  make(
    t: Terms<Value | ControlName | TotalName | "size" | "rows" | "columns">,
  ): Partial<Terms<Value>>;
}

type TotalName = "total0" | "total1" | "total2" | "total3";

/** Numbers that a pass reads from other places than its own element. Such a pass always iterates over segments. */
export interface PassInputs<Value extends string = string> {
  /** Read-only; `launchUpdate` takes them from the operands by name. */
  readonly bindings: readonly KernelBinding[];
  /** Names of the numbers. */
  readonly values: readonly Value[];
  /** WGSL statements that declare each as a `vec4f`, from the quad `q` and the segment `record.z`. */
  readonly wgsl: string;
  /** Sets the same for the element at `index` of the flat buffer. */
  load(
    views: Readonly<Record<string, KernelView>>,
    place: { readonly index: number; readonly segment: number },
    e: Numbers,
  ): void;
}

/** One pass over the elements. It loads the names that its formulas use, and stores those that `update` returns. */
export interface UpdatePass<State extends string = string, Value extends string = string> {
  /** Returns new values of states and of `p`, from the values before the pass. Others stay as they are. Default: all stay. */
  update?(e: Terms<PassName<State, Value>>): Partial<Terms<State | "p">>;
  readonly totals?: SegmentTotals<State, Value>;
  readonly inputs?: PassInputs<Value>;
}

/**
 * An optimizer as data. The generator combines it with a storage of parameters and of moments; see decision 0015. Rules are identified
 * by their objects.
 */
export interface UpdateRule<State extends string = string, Value extends string = string> {
  /** For people, with every choice that changes the formulas. */
  readonly name: string;
  readonly state: Readonly<Record<State, StateKind>>;
  /** float32 numbers that may change from step to step. */
  readonly scalars: readonly Value[];
  /** Names of up to three columns of the rate table, which hold a number for each applied step. */
  readonly columns?: readonly Value[];
  readonly passes: readonly UpdatePass<State, Value>[];
  /** `gatherTotals`, for rules of which a pass has totals: others do without its kernel. */
  readonly gather?: (rule: UpdateRule, index: number) => Kernel;
}

/** Makes a rule, and checks the names in its formulas against those that it declares. */
export const updateRule = <State extends string, Value extends string>(
  rule: UpdateRule<State, Value>,
): UpdateRule => rule as unknown as UpdateRule;

/** Rules that differ by choices which change their formulas. */
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
