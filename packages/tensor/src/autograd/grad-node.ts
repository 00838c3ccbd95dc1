import type { OpDefinition } from "../dispatch/op.js";
import { currentScope, type Scope } from "../record/scope.js";
import type { Tensor } from "../tensor/tensor.js";
import { enrol, type Position } from "./recomputation.js";
import type { ScaleMark } from "./scale-marks.js";

/** What autograd needs to know of an op. */
export interface DifferentiableOp extends Pick<OpDefinition<unknown>, "name" | "backward"> {
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
