import { type CastPolicy, currentRegion } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import type { CastDecision } from "../record/cast-decision.js";
import { currentScope } from "../record/scope.js";
import { requireSynchronous } from "../record/synchronous.js";
import type { Tensor } from "../tensor/tensor.js";
import type { OpDefinition } from "./op.js";
import { whileTracing } from "./tracing.js";

/** What was applied: an op, or a composite, which has a name and a policy alone. Ops are told apart by this object, not by their names. */
export type TracedDefinition = Pick<OpDefinition<unknown>, "name" | "castPolicy" | "pointwise">;

/** One application of an op, with the decision of autocast. */
export interface OpTrace extends CastDecision {
  readonly op: string;
  /** Identifies the op: `relu.definition`. */
  readonly definition: TracedDefinition;
  /** Those of the op, such as the axes of a permutation; undefined for composites. */
  readonly attributes: unknown;
  /** Path of the module that applied it; "" where none did. */
  readonly module: string;
  /** The policy in the op's definition. */
  readonly ownPolicy: CastPolicy;
  /** The arguments as given, before casts. */
  readonly inputs: readonly Tensor[];
  /** The arguments after casts. */
  readonly operands: readonly Tensor[];
  readonly results: readonly Tensor[];
  readonly outputs: readonly DType[];
}

/** What {@link traceOps} reports. */
export interface TraceOptions {
  /**
   * Reports the ops inside of composites in place of these, and also casts and reshapes, so that every tensor is an argument of `fn`, a
   * variable, or the result of a reported op. Default false.
   */
  readonly inside?: boolean;
}

type Listener = (trace: OpTrace) => void;

/** Those that hear of composites, and those that hear of what is inside. */
let whole: Listener | undefined;
let inside: Listener | undefined;

/**
 * Calls `fn`, and `onOp` for each op that it applies, in order. Ops of backward passes are reported too.
 * @throws TypeError where `fn` returns a promise: ops after its first `await` would not be reported
 */
export function traceOps<T>(onOp: Listener, fn: () => T, options: TraceOptions = {}): T {
  const [outerWhole, outerInside] = [whole, inside];
  const both =
    (outer: Listener | undefined): Listener =>
    (trace) => {
      outer?.(trace);
      onOp(trace);
    };
  if (options.inside) inside = both(outerInside);
  else whole = both(outerWhole);
  try {
    return requireSynchronous("traceOps", whileTracing(fn));
  } finally {
    [whole, inside] = [outerWhole, outerInside];
  }
}

/** @internal Runs `fn` and reports it as one op, in place of the ops that it applies. */
export function traceAsOne<T>(describe: (result: T) => OpTrace, fn: () => T): T {
  const outer = whole;
  if (!outer) return fn();
  whole = undefined;
  try {
    const result = fn();
    outer(describe(result));
    return result;
  } finally {
    whole = outer;
  }
}

/**
 * @internal Runs `fn` and reports it as one op to those that hear of what is inside of composites, in place of the ops that it applies. For
 * a part of a composite whose ops are of no use to them, as the steps of a recurrent layer.
 */
export function traceInsideAsOne<T>(
  definition: TracedDefinition,
  attributes: unknown,
  operands: readonly Tensor[],
  fn: () => T,
  resultsOf: (result: T) => readonly Tensor[],
): T {
  const outer = inside;
  if (!outer) return fn();
  inside = undefined;
  try {
    const result = fn();
    outer(insideTrace(definition, attributes, operands, resultsOf(result)));
    return result;
  } finally {
    inside = outer;
  }
}

/** @internal Whether anyone hears of composites. */
export const isTracedWhole = (): boolean => whole !== undefined;

/** @internal The listener to the ops that dispatch applies; undefined where there is none. */
export function opListener(): Listener | undefined {
  if (!whole || !inside) return whole ?? inside;
  const [first, second] = [whole, inside];
  return (trace) => {
    first(trace);
    second(trace);
  };
}

/** @internal Reports a cast or a view, of which those alone hear that trace what is inside. */
export function traceInside(
  definition: TracedDefinition,
  attributes: unknown,
  input: Tensor,
  result: Tensor,
): void {
  inside?.(insideTrace(definition, attributes, [input], [result]));
}

const insideTrace = (
  definition: TracedDefinition,
  attributes: unknown,
  operands: readonly Tensor[],
  results: readonly Tensor[],
): OpTrace => ({
  ...{ op: definition.name, definition, attributes },
  module: currentScope()?.path() ?? "",
  ...{ policy: definition.castPolicy, ownPolicy: definition.castPolicy },
  region: currentRegion(),
  ...{ inputs: operands, operands, cast: operands.map(({ dtype }) => dtype) },
  ...{ results, outputs: results.map(({ dtype }) => dtype) },
});
