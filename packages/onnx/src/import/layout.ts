import { Tensor } from "@halfstep/tensor";
import type { Operator } from "./call.js";

/** Images [batch, channels, height, width] that were computed with channels last, by the result of the permutation. */
const channelsLast = new WeakMap<Tensor, Tensor>();

/** An image as the kernels take it. */
export const toLast = (x: Tensor): Tensor => channelsLast.get(x) ?? x.permute([0, 2, 3, 1]);

/** An image as the graph has it. The permutation is not computed where only images with channels last are read. */
export function fromLast(x: Tensor): Tensor {
  const first = x.permute([0, 3, 1, 2]);
  channelsLast.set(first, x);
  return first;
}

/** Applies an elementwise function where the numbers already are. */
export const keepingLayout =
  (operator: Operator): Operator =>
  (call) => {
    const inner = call.inputs.map((x) => (x instanceof Tensor ? channelsLast.get(x) : undefined));
    const all = inner.filter((x): x is Tensor => x !== undefined);
    if (all.length === 0 || all.length !== call.inputs.length) return operator(call);
    const result = operator(call.with(all));
    return result instanceof Tensor ? fromLast(result) : result;
  };
