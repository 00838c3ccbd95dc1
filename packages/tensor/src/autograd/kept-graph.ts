import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import type { GradNode } from "./grad-node.js";

/** The graph below tensors: every node that a backward pass from one of them can reach. */
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

/** The tensors that a backward pass may read at a node, without those that it recomputes. */
function savedBy({ op, inputs, outputs, position }: GradNode): readonly Tensor[] {
  if (op.savesNothing) return [];
  if (!position) return [...inputs, ...outputs];
  return inputs.filter(({ gradNode }) => gradNode?.position?.segment !== position.segment);
}

/** Keeps every tensor that a backward pass from these results can read. */
export function keepGraph(results: readonly Tensor[], { recorder }: Runtime): void {
  for (const node of nodesBelow(results)) recorder.handles.keepFor(node, () => savedBy(node));
}

/** Releases the tensors that were kept only for a backward pass that has now processed this node. */
export function releaseSaved(node: GradNode, { recorder }: Runtime): void {
  recorder.handles.releaseFor(
    node,
    () => savedBy(node),
    (undo) => recorder.onDrop(undo),
  );
}
