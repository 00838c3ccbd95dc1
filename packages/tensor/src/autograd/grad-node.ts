import { currentScope, type Scope } from "../record/scope.js";
import type { Tensor } from "../tensor/tensor.js";
import { enrol, type Position } from "./recomputation.js";
import type { ScaleMark } from "./scale-marks.js";

/** What an op gets to compute the gradients of its inputs from. */
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

/** The gradient of each input of an op; undefined for those that need none. */
export type BackwardRule<A> = (context: BackwardContext<A>) => readonly (Tensor | undefined)[];

/** What autograd needs to know of an op. */
export interface DifferentiableOp {
  /** The name in errors. */
  readonly name: string;
  /** "none" where no gradient flows through the op. */
  readonly backward: BackwardRule<unknown> | "none";
  /**
   * Its backward needs no values, only shapes and dtypes of its inputs. So backward passes never use it up: what several graphs
   * have in common may consist of such ops, and each of them may be differentiated.
   */
  readonly savesNothing?: true;
}

/** What autograd remembers of one application of an op. */
export interface GradNode {
  readonly op: DifferentiableOp;
  /** Empty once a backward pass has used the node up. */
  inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly attributes: unknown;
  /** The runtime's clock when the op was recorded: which version of a variable it read. */
  readonly clock: number;
  /** The module that applied the op. */
  readonly scope: Scope | undefined;
  /** True once a backward pass has used the node up. */
  isFreed: boolean;
  /** Where to find the node again once a checkpoint has been recomputed, whose results are not kept. */
  position: Position | undefined;
  /** Where the op scales a loss: what gradients that come through it carry. */
  scaleMark?: ScaleMark;
}

/** Makes outputs depend on inputs: a backward pass that comes to one of them goes on to these. */
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
