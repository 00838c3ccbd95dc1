import type { CastPolicy } from "@halfstep/autocast";
import type { DType, LaunchTarget } from "@halfstep/device";
import type { ShapedBinding } from "@halfstep/kernels";
import { dispatch } from "./dispatch.js";
import type { Storage } from "./storage.js";
import type { Tensor } from "./tensor.js";

/** Shape and dtype of a result. */
export interface TensorSpec {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** A place in memory that a launch can bind. */
export type Operand = ShapedBinding<Storage>;

export interface ForwardContext<A> {
  /** Takes the op's launches. Its `allocate` gives scratch that lives as long as the recording needs it. */
  readonly target: LaunchTarget<Storage>;
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  readonly attributes: A;
}

export interface BackwardContext<A> {
  /** The inputs as the forward saw them: after autocast, and at the version that they had then. */
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** Gradients of the outputs; undefined where nothing depends on that output. */
  readonly gradients: readonly (Tensor | undefined)[];
  /** Which inputs need a gradient; others may be left undefined. */
  readonly needs: readonly boolean[];
  readonly attributes: A;
}

/** Everything the library knows about one op. All members are required: an op without a derivative says so. */
export interface OpDefinition<A> {
  /** The name in plans, errors and cast policies. */
  readonly name: string;
  /** How autocast treats the op's floating inputs. */
  readonly castPolicy: CastPolicy;
  /** Checks the inputs, and tells shape and dtype of each result. Throws ShapeError or DTypeError. */
  shape(inputs: readonly TensorSpec[], attributes: A): readonly TensorSpec[];
  /** Appends the launches that compute the outputs. */
  forward(context: ForwardContext<A>): void;
  /** The gradient of each input, written in ops. "none" for ops through which no gradient flows. */
  readonly backward: ((context: BackwardContext<A>) => readonly (Tensor | undefined)[]) | "none";
}

/** An op, ready to be called. */
export interface Op<A> extends OpDefinition<A> {
  /** Applies the op and returns its first result. */
  (inputs: readonly Tensor[], attributes: A): Tensor;
  /** Applies the op and returns all its results. */
  all(inputs: readonly Tensor[], attributes: A): readonly Tensor[];
}

/**
 * Defines an op: one of the library's, or a user's own around a kernel of `defineKernel`.
 *
 * ```ts
 * const cube = defineOp<null>({
 *   name: "cube",
 *   castPolicy: "none",
 *   shape: ([x]) => [x],
 *   forward: ({ target, inputs: [x], outputs: [y] }) => target.launch(elementwise(cubeExpression, [x], y)),
 *   backward: ({ inputs: [x], gradients: [g] }) => [g.mul(x.square().mul(3))],
 * });
 * ```
 */
export function defineOp<A>(definition: OpDefinition<A>): Op<A> {
  const all = (inputs: readonly Tensor[], attributes: A): readonly Tensor[] =>
    // Not `op`, which has to look its members up by name.
    dispatch(definition as OpDefinition<unknown>, inputs, attributes);
  return Object.defineProperties(
    (inputs: readonly Tensor[], attributes: A): Tensor => all(inputs, attributes)[0] as Tensor,
    Object.getOwnPropertyDescriptors({ ...definition, all }),
  ) as unknown as Op<A>;
}
