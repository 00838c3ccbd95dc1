import type { Slice, SliceRule } from "../autograd/grad-node.js";
import { castTo } from "../dispatch/cast.js";
import { add } from "../ops/index.js";
import type { Tensor } from "../tensor/tensor.js";

/** The gradient of a slice of a tensor. */
export interface SliceGradient extends Slice, Pick<SliceRule, "join"> {
  readonly gradient: Tensor;
  /** This gradient widened to the whole tensor, with zeros elsewhere. */
  widened(): Tensor;
}

/**
 * Gradients during a backward pass, each the sum over the users of its tensor. Where slices cover a tensor (`split`, or `select`
 * at every place), one launch puts their gradients side by side, instead of adding as many tensors of the full size.
 */
export class Gradients {
  readonly #sums: Map<Tensor, Tensor>;
  readonly #slices = new Map<Tensor, SliceGradient[]>();

  constructor(root: Tensor, gradient: Tensor) {
    this.#sums = new Map([[root, gradient]]);
  }

  /** The gradient of a tensor so far; undefined where there is none yet. */
  get(tensor: Tensor): Tensor | undefined {
    this.#join(tensor);
    return this.#sums.get(tensor);
  }

  /** Adds the gradient from one user of a tensor. */
  add(tensor: Tensor, gradient: Tensor): void {
    const known = this.#sums.get(tensor);
    this.#sums.set(tensor, known ? add(known, gradient) : gradient);
  }

  /** Adds the gradient from one user of a slice of a tensor. */
  addSlice(tensor: Tensor, slice: SliceGradient): void {
    const known = this.#slices.get(tensor);
    if (known) known.push(slice);
    else this.#slices.set(tensor, [slice]);
  }

  delete(tensor: Tensor): void {
    this.#sums.delete(tensor);
    this.#slices.delete(tensor);
  }

  /** Adds up the remaining slices, while the backward pass is being recorded. */
  finish(): ReadonlyMap<Tensor, Tensor> {
    for (const tensor of [...this.#slices.keys()]) this.#join(tensor);
    return this.#sums;
  }

  #join(tensor: Tensor): void {
    const slices = this.#slices.get(tensor);
    if (!slices) return;
    this.#slices.delete(tensor);
    const [{ axis, join }] = slices as [SliceGradient];
    const sorted = [...slices].sort((a, b) => a.start - b.start);
    if (slices.length > 1 && tile(sorted, axis, tensor.shape[axis] as number)) {
      const pieces = sorted.map(({ gradient }) => gradient);
      this.add(tensor, castTo(join(pieces, axis), tensor.dtype));
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
