import type { CastPolicy } from "@halfstep/autocast";
import type { DType, LaunchTarget } from "@halfstep/device";
import type { Expression, ShapedBinding } from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import type { ParameterKinds } from "../arguments/kinds.js";
import type { BackwardContext } from "../autograd/grad-node.js";
import type { Storage } from "../record/storage.js";
import type { Tensor } from "../tensor/tensor.js";
import { dispatch } from "./dispatch.js";

/** Shape and dtype of a result. */
export interface TensorSpec {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** A place in memory that a launch can bind. */
export type Operand = ShapedBinding<Storage>;

/** The arguments of an op's `forward`. */
export interface ForwardContext<A> {
  /** Takes the op's launches. Its `allocate` gives scratch that lives as long as the recording needs it. */
  readonly target: LaunchTarget<Storage>;
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  readonly attributes: A;
}

/** The definition of one op. All members are required: an op without a derivative declares "none". */
export interface OpDefinition<A> {
  /** The name in plans, errors and cast policies. */
  readonly name: string;
  /** How autocast treats the op's floating inputs. */
  readonly castPolicy: CastPolicy;
  /** Checks the inputs and returns shape and dtype of each result. Throws ShapeError or DTypeError. */
  shape(inputs: readonly TensorSpec[], attributes: A): readonly TensorSpec[];
  /** Appends the launches that compute the outputs. */
  forward(context: ForwardContext<A>): void;
  /** The gradient of each input, written in ops. "none" for ops through which no gradient flows. */
  readonly backward: ((context: BackwardContext<A>) => readonly (Tensor | undefined)[]) | "none";
  /** How each element of the result is computed, for tools that translate ops. Default: not by an expression. */
  readonly pointwise?: {
    readonly expression: Expression;
    /** The expression's scalars, for a first operand of the dtype. */
    scalars(attributes: A, dtype: DType): readonly number[];
  };
}

/** An op that can be applied to a list of tensors. {@link callable} gives it a calling form of its own. */
export interface Op<A> extends OpDefinition<A> {
  /** Identifies the op in traces. */
  readonly definition: OpDefinition<A>;
  /** Applies the op and returns its first result. */
  apply(inputs: readonly Tensor[], attributes: A): Tensor;
  /** Applies the op and returns all its results. */
  applyAll(inputs: readonly Tensor[], attributes: A): readonly Tensor[];
}

/** An op that is called as a function: `relu(x)`. */
export type CallableOp<F extends (...given: never[]) => unknown, A> = F & Op<A>;

/** A callable op of one tensor. */
export interface UnaryOp extends Op<null> {
  (x: Tensor): Tensor;
}

/** A callable op of two tensors, which broadcast. */
export interface BinaryOp extends Op<null> {
  (a: Tensor, b: Tensor): Tensor;
}

/**
 * Defines an op: one of the library's, or a user's own around a kernel of `defineKernel`. It is applied with `apply`;
 * {@link callable} makes a function of it.
 *
 * ```ts
 * const cube = defineOp<null>({
 *   name: "cube",
 *   castPolicy: "none",
 *   shape: ([x]) => [x],
 *   forward: ({ target, inputs: [x], outputs: [y] }) => target.launch(elementwise(cubeExpression, [x], y)),
 *   backward: ({ inputs: [x], gradients: [g] }) => [g.mul(x.square().mul(3))],
 * });
 * const y = cube.apply([x], null);
 * ```
 */
export function defineOp<A>(definition: OpDefinition<A>): Op<A> {
  const applyAll = (inputs: readonly Tensor[], attributes: A): readonly Tensor[] =>
    // Pass the definition, not the op: an op that is a function looks its members up by name, which is slower.
    dispatch(definition as OpDefinition<unknown>, inputs, attributes);
  return {
    ...definition,
    definition,
    apply: (inputs, attributes) => applyAll(inputs, attributes)[0] as Tensor,
    applyAll,
  };
}

/**
 * Gives an op its calling form: a function of the given parameters, whose arguments are checked before `call` gets them.
 *
 * ```ts
 * const cubed = callable(cube, { x: kinds.tensor }, (x: Tensor) => cube.apply([x], null));
 * const y = cubed(x);
 * ```
 */
export function callable<F extends (...given: never[]) => unknown, A>(
  op: Op<A>,
  parameters: ParameterKinds,
  call: F,
): CallableOp<F, A> {
  const properties = Object.getOwnPropertyDescriptors(op);
  return Object.defineProperties(checked(op.name, parameters, call), properties) as CallableOp<
    F,
    A
  >;
}
