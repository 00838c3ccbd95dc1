import type { KernelBinding } from "@halfstep/device";
import { variablesOf } from "../formula/walk.js";
import { type ParameterKind, parameterStorages } from "./parameter-storage.js";
import { type StateKind, statesOf, type UpdatePass, type UpdateRule } from "./rule.js";
import { type PassTrace, rootsOf, tracePass } from "./trace-rule.js";

/** The plan of one pass of a rule: its operands, and how it iterates over elements. */
export interface PassPlan {
  readonly rule: UpdateRule;
  readonly pass: UpdatePass;
  readonly parameters: ParameterKind;
  readonly moments: MomentStorage;
  /** True where stores draw random bits. */
  readonly draws: boolean;
  /** The formulas of the pass. */
  readonly trace: PassTrace;
  /** Names of the variables in the formulas. */
  readonly used: ReadonlySet<string>;
  readonly usesGradient: boolean;
  readonly loadsParameter: boolean;
  readonly storesParameter: boolean;
  readonly states: readonly PassState[];
  /** Factors of earlier passes that this one uses, with their places. */
  readonly factors: readonly { readonly name: string; readonly place: number }[];
  /**
   * True where a workgroup processes a chunk of one segment; false where an invocation processes one quad of the flat
   * buffer.
   */
  readonly walksChunks: boolean;
  readonly bindings: readonly KernelBinding[];
}

/** How the moments of a rule are stored. */
export type MomentStorage = "float32" | "bfloat16" | "8bit";

export interface PassState {
  readonly name: string;
  /** Index among the states of the rule. */
  readonly place: number;
  readonly kind: StateKind;
  readonly isStored: boolean;
  readonly is8Bit: boolean;
  /** Stored as bfloat16 with stochastic rounding: rounding to nearest would lose small changes of an average. */
  readonly isBfloat16: boolean;
}

export function planPass(
  rule: UpdateRule,
  index: number,
  parameters: ParameterKind,
  moments: MomentStorage,
): PassPlan {
  const pass = rule.passes[index] as UpdatePass;
  const { totals, inputs } = pass;
  const trace = tracePass(rule, index);
  const used = variablesOf(rootsOf(trace));
  const states = statesOf(rule)
    .map((name, place): PassState => {
      const kind = rule.state[name] as StateKind;
      const isMoment = kind === "signed" || kind === "unsigned";
      return {
        name,
        place,
        kind,
        isStored: name in trace.next,
        is8Bit: isMoment && moments === "8bit",
        isBfloat16: isMoment && moments === "bfloat16",
      };
    })
    .filter(({ name, isStored }) => isStored || used.has(name));
  const is8Bit = states.some((state) => state.is8Bit);
  const factors = factorsBefore(rule, index).filter(({ name }) => used.has(name));
  const walksChunks = is8Bit || totals !== undefined || inputs !== undefined || factors.length > 0;
  const usesGradient = used.has("g");
  const storesParameter = "p" in trace.next;
  const loadsParameter = storesParameter || used.has("p");
  const storage = parameterStorages[parameters];

  const bindings: KernelBinding[] = [{ name: "control", access: "read", dtypes: ["float32"] }];
  if (usesGradient) bindings.push({ name: "gradients", access: "read" });
  if (storesParameter) bindings.push({ name: "values", access: "readwrite" });
  else if (loadsParameter && storage.readsValues) bindings.push({ name: "values", access: "read" });
  for (const buffer of storage.buffers)
    if (storesParameter) bindings.push(buffer);
    else if (loadsParameter) bindings.push({ ...buffer, access: "read" });
  for (const state of states)
    bindings.push({
      name: state.name,
      access: state.isStored ? "readwrite" : "read",
      ...(state.is8Bit
        ? { unit: 1, dtypes: ["uint32"] }
        : { dtypes: [state.isBfloat16 ? "bfloat16" : "float32"] }),
    });
  bindings.push(...(inputs?.bindings ?? []));
  if (walksChunks) bindings.push({ name: "chunks", access: "read", dtypes: ["uint32"] });
  if (factors.length > 0) bindings.push({ name: "factors", access: "read", dtypes: ["float32"] });
  if (totals) bindings.push({ name: "partials", access: "readwrite", dtypes: ["float32"] });

  return {
    rule,
    pass,
    parameters,
    moments,
    draws:
      (storesParameter && storage.draws) ||
      states.some((state) => state.isStored && (state.is8Bit || state.isBfloat16)),
    trace,
    used,
    usesGradient,
    loadsParameter,
    storesParameter,
    states,
    factors,
    walksChunks,
    bindings,
  };
}

/** Factors from the totals of passes before pass `index`. */
function factorsBefore(
  rule: UpdateRule,
  index: number,
): readonly { readonly name: string; readonly place: number }[] {
  for (let before = index - 1; before >= 0; before--) {
    const totals = rule.passes[before]?.totals;
    if (totals) return totals.factors.map((name, place) => ({ name, place }));
  }
  return [];
}
