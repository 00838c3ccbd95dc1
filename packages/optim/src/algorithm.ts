import type { UpdateRule } from "@halfstep/kernels/optimizers";
import type { FlatTensors } from "./flat-tensors.js";
import type { MakeExtension } from "./group-extension.js";
import type { MomentFormat } from "./group-state.js";
import type { ParameterStorage } from "./parameter-storage.js";
import type { RateColumns } from "./rate-table.js";
import type { LearningRate } from "./schedules/schedule.js";

/** Options that every parameter group has. */
export interface CommonOptions {
  lr: LearningRate;
  weightDecay: number;
  /** Ascends instead of descending. */
  maximize: boolean;
}

/** Options of an optimizer as a whole, the same for every optimizer. */
export interface OptimizerOptions {
  /** Default: `"float32"` for float32 values, and else `"master"`. */
  readonly storage?: ParameterStorage;
  /** Default `"float32"`. */
  readonly moments?: MomentFormat;
  /** Of stochastic rounding, of parameters and of moments: a whole number below 2^53. Default 0. */
  readonly seed?: number;
  /**
   * Clips by the 2-norm of all gradients of all groups within `step()`, as `clipGradNorm` does, at the cost of one launch.
   * Default: no clipping.
   */
  readonly clipGradNorm?: number;
}

/** One set of parameters with its own options, which may be changed between steps. */
export type ParameterGroup<B, H> = H & { readonly params: FlatTensors<B> };

/** A group as passed to an optimizer; missing options come from the optimizer's. */
export type GroupInput<B, H> = Partial<H> & { readonly params: FlatTensors<B> };

/** Device buffers by which a scaler controls one step of an optimizer. */
export interface StepOptions<B> {
  /** One float32. Where it is not 0, the step changes nothing. */
  readonly foundInf?: B;
  /** A scaler's float32 `[scale, 1 / scale, …]`, where gradients still carry the scale. */
  readonly gradScale?: B;
}

/** The definition of an optimizer's algorithm. */
export interface Algorithm<H> {
  readonly name: string;
  /** The rule of a group, fixed when the group is added: the same object for equal options, as from `ruleFamily()`. */
  rule(options: H): UpdateRule;
  /** The rule's scalars. */
  scalars(options: H): Readonly<Record<string, number>>;
  /** Throws a RangeError that names the option. */
  validate(options: H): void;
  /** The columns that the rule names. Default: none. */
  columns?(options: H): RateColumns;
  /** Initial values of states; default 0. */
  initial?(options: H): Readonly<Record<string, number>>;
  /** Launches and buffers of a group besides the passes of its rule. */
  readonly extension?: MakeExtension<H>;
  /** Added to the norm of the gradients where it divides `clipGradNorm`. Default 1e-6, as in torch. */
  readonly clipEps?: number;
}

/** A change of every gradient before the rule, such as that of LARC. */
export interface GradientAdaptation<H> {
  rule(rule: UpdateRule): UpdateRule;
  /** The options for the rule, and the scalars of the adaptation. */
  apply(options: H): { readonly options: H; readonly scalars: Readonly<Record<string, number>> };
}
