import type { AutocastRegion, CastPolicy } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import type { Tensor } from "../tensor/tensor.js";

/** One application of an op, with the decision of autocast. */
export interface OpTrace {
  readonly op: string;
  /** Path of the module that applied it; "" where none did. */
  readonly module: string;
  /** The policy in effect, after the overrides of the region. */
  readonly policy: CastPolicy;
  /** The policy in the op's definition. */
  readonly ownPolicy: CastPolicy;
  readonly region: AutocastRegion | undefined;
  /** The arguments as given, before casts. */
  readonly inputs: readonly Tensor[];
  /** Dtypes of the arguments after casts. */
  readonly cast: readonly DType[];
  readonly outputs: readonly DType[];
}

type Listener = (trace: OpTrace) => void;

let listener: Listener | undefined;

/** Calls `fn`, and `onOp` for each op that it applies, in order. Ops of backward passes are reported too. */
export function traceOps<T>(onOp: Listener, fn: () => T): T {
  const outer = listener;
  listener = (trace) => {
    outer?.(trace);
    onOp(trace);
  };
  try {
    return fn();
  } finally {
    listener = outer;
  }
}

/** @internal Runs `fn` and reports it as one op, in place of the ops that it applies. */
export function traceAsOne<T>(describe: (result: T) => OpTrace, fn: () => T): T {
  const outer = listener;
  if (!outer) return fn();
  listener = undefined;
  try {
    const result = fn();
    outer(describe(result));
    return result;
  } finally {
    listener = outer;
  }
}

/** @internal The listener to which dispatch reports; undefined where there is none. */
export const opListener = (): Listener | undefined => listener;
