import { isTensor } from "../arguments/is-tensor.js";
import type { Tensor } from "../tensor/tensor.js";
import type { GradNode } from "./grad-node.js";

/** What a callback returned, unless that is a promise: what it would do after its first `await` could not be recorded. */
export function requireSynchronous<T>(caller: string, result: T): T {
  if (
    typeof result === "object" &&
    result !== null &&
    "then" in result &&
    typeof result.then === "function"
  )
    throw new TypeError(
      `${caller}() takes a synchronous callback, and this one returned a promise: read results after the step`,
    );
  return result;
}

/** The tensors in a result: itself, or in arrays, maps and plain objects, nested as they may be. */
export function tensorsIn(value: unknown): readonly Tensor[] {
  const tensors: Tensor[] = [];
  collectTensors(value, tensors);
  return tensors;
}

function collectTensors(value: unknown, into: Tensor[]): void {
  if (typeof value !== "object" || value === null) return;
  if (isTensor(value)) into.push(value);
  else if (Array.isArray(value)) for (const item of value) collectTensors(item, into);
  else if (value instanceof Map) for (const item of value.values()) collectTensors(item, into);
  else if (Object.getPrototypeOf(value) === Object.prototype)
    for (const item of Object.values(value)) collectTensors(item, into);
}

/** The graph below tensors: every node that a backward pass from one of them could come to. */
export function nodesBelow(roots: readonly Tensor[]): Set<GradNode> {
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
export function savedBy({ op, inputs, outputs, position }: GradNode): readonly Tensor[] {
  if (op.savesNothing) return [];
  if (!position) return [...inputs, ...outputs];
  return inputs.filter(({ gradNode }) => gradNode?.position?.segment !== position.segment);
}
