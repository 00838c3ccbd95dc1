import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import type { GradNode } from "./grad-node.js";

/** The graph below tensors: every node that a backward pass from one of them could come to. */
function nodesBelow(roots: readonly Tensor[]): Set<GradNode> {
  const nodes = new Set<GradNode>();
  const stack = roots.map(({ gradNode }) => gradNode);
  while (stack.length > 0) {
    const node = stack.pop();
    if (!node || nodes.has(node)) continue;
    nodes.add(node);
    for (const { gradNode } of node.inputs) stack.push(gradNode);
  }
  return nodes;
}

/** What a backward pass may read when it comes to a node: what it will compute again is not among it. */
function savedBy({ op, inputs, outputs, position }: GradNode): readonly Tensor[] {
  if (op.savesNothing) return [];
  if (!position) return [...inputs, ...outputs];
  return inputs.filter(({ gradNode }) => gradNode?.position?.segment !== position.segment);
}

/** Keeps whatever a backward pass from these results of a runtime could read. */
export function keepGraph(results: readonly Tensor[], { recorder }: Runtime): void {
  for (const node of nodesBelow(results)) recorder.handles.keepFor(node, () => savedBy(node));
}

/** Gives back what is kept for nothing but a backward pass that has now come to this node. */
export function releaseSaved(node: GradNode, { recorder }: Runtime): void {
  recorder.handles.releaseFor(
    node,
    () => savedBy(node),
    (undo) => recorder.onDrop(undo),
  );
}
