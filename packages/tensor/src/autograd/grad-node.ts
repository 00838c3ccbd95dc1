import type { ScaleMark } from "@halfstep/grad-scaler";
import { currentScope, type Scope } from "../record/scope.js";
import type { Tensor } from "../tensor/tensor.js";
import { enrol, type Position } from "./recomputation.js";

/** The arguments of an op's backward rule. */
export interface BackwardContext<A> {
  /** The inputs as the forward pass read them: after autocast, and at the version that they had then. */
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** Gradients of the outputs; undefined where nothing depends on that output. */
  readonly gradients: readonly (Tensor | undefined)[];
  /** Which inputs need a gradient; others may be left undefined. */
  readonly needs: readonly boolean[];
  readonly attributes: A;
}

/** The gradient of each input of an op; undefined for those that need none. */
export type BackwardRule<A> = (context: BackwardContext<A>) => readonly (Tensor | undefined)[];

/** Neighbouring indices of one axis, and all indices of the other axes. */
export interface Slice {
  readonly axis: number;
  readonly start: number;
  readonly size: number;
}

/** How gradients of slices of one tensor become its gradient. */
export interface SliceRule {
  /** The slice that a node takes of its input; undefined where it does something else. */
  takenBy(node: GradNode): Slice | undefined;
  /** Gradients of slices that cover an axis, side by side. */
  join(gradients: readonly Tensor[], axis: number): Tensor;
}

/** The part of an op's definition that autograd uses. */
export interface DifferentiableOp {
  /** The name in errors. */
  readonly name: string;
  /** "none" where no gradient flows through the op. */
  readonly backward: BackwardRule<unknown> | "none";
  /**
   * The op's backward rule needs no values, only shapes and dtypes of its inputs. So backward passes never free its node:
   * several graphs may share nodes of such ops, and each graph can be differentiated.
   */
  readonly savesNothing?: true;
  /** Present for an op that takes slices. */
  readonly slices?: SliceRule;
}

/** One application of an op, as autograd keeps it. */
export interface GradNode {
  readonly op: DifferentiableOp;
  /** Empty once a backward pass has freed the node. */
  inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly attributes: unknown;
  /** The runtime's clock when the op was recorded, which identifies the version of a variable that the op read. */
  readonly clock: number;
  /** The module that applied the op. */
  readonly scope: Scope | undefined;
  /** True once a backward pass has freed the node. */
  isFreed: boolean;
  /** The node's place in the tape of its checkpoint, whose results are recomputed; undefined outside checkpoints. */
  position: Position | undefined;
  /** Where the op scales a loss: the mark of the gradients that pass through it. */
  scaleMark?: ScaleMark;
}

/** Makes outputs depend on inputs: a backward pass that reaches an output continues to the inputs. */
export function dependOn(
  inputs: readonly Tensor[],
  outputs: readonly [Tensor, ...Tensor[]],
  op: GradNode["op"],
  attributes: unknown = undefined,
): void {
  const { clock } = outputs[0].runtime.recorder;
  const scope = currentScope();
  const node: GradNode = {
    op,
    inputs,
    outputs,
    attributes,
    clock,
    scope,
    isFreed: false,
    position: undefined,
  };
  node.position = enrol(node);
  for (const output of outputs) output.attachNode(node);
}
