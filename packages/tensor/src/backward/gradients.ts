import { castTo } from "../dispatch/cast.js";
import * as ops from "../ops/index.js";
import type { Slice } from "../ops/windows.js";
import type { Tensor } from "../tensor/tensor.js";

/** The gradient of a slice of a tensor. */
export interface SliceGradient extends Slice {
  readonly gradient: Tensor;
  /** The same as a gradient of the whole tensor: zeros everywhere else. */
  widened(): Tensor;
}

/**
 * Gradients during a backward pass, each the sum of what the users of its tensor have given. Where all of a tensor was used slice
 * by slice (`split`, or `select` at every place), they are put side by side in one launch, instead of a sum of as many tensors of
 * the full size.
 */
export class Gradients {
  readonly #sums: Map<Tensor, Tensor>;
  readonly #slices = new Map<Tensor, SliceGradient[]>();

  constructor(root: Tensor, gradient: Tensor) {
    this.#sums = new Map([[root, gradient]]);
  }

  /** What has come so far for a tensor; undefined where nothing has. */
  get(tensor: Tensor): Tensor | undefined {
    this.#join(tensor);
    return this.#sums.get(tensor);
  }

  /** Adds what a user of a tensor gives. */
  add(tensor: Tensor, gradient: Tensor): void {
    const known = this.#sums.get(tensor);
    this.#sums.set(tensor, known ? ops.add(known, gradient) : gradient);
  }

  /** Adds what a user of a slice of a tensor gives. */
  addSlice(tensor: Tensor, slice: SliceGradient): void {
    const known = this.#slices.get(tensor);
    if (known) known.push(slice);
    else this.#slices.set(tensor, [slice]);
  }

  delete(tensor: Tensor): void {
    this.#sums.delete(tensor);
    this.#slices.delete(tensor);
  }

  /** Adds up everything that is left, while the backward pass is being recorded. */
  finish(): ReadonlyMap<Tensor, Tensor> {
    for (const tensor of [...this.#slices.keys()]) this.#join(tensor);
    return this.#sums;
  }

  #join(tensor: Tensor): void {
    const slices = this.#slices.get(tensor);
    if (!slices) return;
    this.#slices.delete(tensor);
    const [{ axis }] = slices as [SliceGradient];
    const sorted = [...slices].sort((a, b) => a.start - b.start);
    if (slices.length > 1 && tile(sorted, axis, tensor.shape[axis] as number)) {
      const pieces = sorted.map(({ gradient }) => gradient);
      this.add(tensor, castTo(ops.cat(pieces, axis), tensor.dtype));
    } else for (const { widened } of slices) this.add(tensor, widened());
  }
}

/** Whether slices along an axis lie side by side and cover it. */
function tile(sorted: readonly Slice[], axis: number, length: number): boolean {
  let end = 0;
  for (const slice of sorted) {
    if (slice.axis !== axis || slice.start !== end) return false;
    end += slice.size;
  }
  return end === length;
}
