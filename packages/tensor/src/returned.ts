import type { GradNode } from "./grad-node.js";
import { isTensor } from "./is-tensor.js";
import type { Tensor } from "./tensor.js";

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

/** Everything that a backward pass from this tensor could read: what it will compute again is not among it. */
export function savedBelow(root: Tensor): Set<Tensor> {
  const saved = new Set([root]);
  const seen = new Set<GradNode>();
  const stack = [root.gradNode];
  while (stack.length > 0) {
    const node = stack.pop();
    if (!node || seen.has(node)) continue;
    seen.add(node);
    const { inputs, outputs, position } = node;
    if (!position) for (const output of outputs) saved.add(output);
    for (const input of inputs) {
      const isRecomputed = position && input.gradNode?.position?.segment === position.segment;
      if (!isRecomputed) saved.add(input);
      stack.push(input.gradNode);
    }
  }
  return saved;
}
