import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { gather } from "./indexing.js";
import { withAxisLast } from "./scan.js";
import { type Extremum, ofScalar } from "./statistics.js";
import { axisOf } from "./windows.js";

/** Options of {@link topK}. */
export interface TopKOptions {
  /** Default the last. */
  readonly axis?: number;
  /** True for the largest elements, false for the smallest. Default true. */
  readonly largest?: boolean;
  /** True orders the results best first, false by their indices. Default true. */
  readonly sorted?: boolean;
}

/**
 * The k largest (or smallest) elements along an axis, and their indices as uint32, as torch.topk: [..., k, ...] each. Ties go to the
 * first; NaN counts as larger than every number. The gradient goes to the elements that were taken. A scalar is an axis of one element.
 *
 * @throws ShapeError where the axis has fewer than k elements
 */
export const topK: (x: Tensor, k: number, options?: TopKOptions) => Extremum = checked(
  "topK",
  {
    x: kinds.tensor,
    k: kinds.number,
    options: kinds.optionals({ axis: kinds.integer, largest: kinds.flag, sorted: kinds.flag }),
  },
  (
    x: Tensor,
    k: number,
    { axis = -1, largest = true, sorted = true }: TopKOptions = {},
  ): Extremum => {
    if (x.rank === 0) {
      requireCount(k, 1);
      return ofScalar("topK", x, axis);
    }
    const d = axisOf("topK", x, axis);
    const indices = noGrad(() =>
      withAxisLast(x, d, (rows) => placesOp.apply([rows], { k, largest, sorted })),
    );
    return { values: gather(x, d, indices), indices };
  },
);

function requireCount(k: number, size: number): void {
  if (!(Number.isInteger(k) && k >= 1 && k <= size))
    throw new ShapeError(`topK: k is ${k}, but an axis of ${size} needs 1 to ${size}`);
}

type Places = Required<Omit<TopKOptions, "axis">> & { readonly k: number };

const placesOp: Op<Places> = defineOp<Places>({
  name: "topK",
  castPolicy: "none",
  shape([x], { k }) {
    const { shape } = x as TensorSpec;
    requireCount(k, shape.at(-1) as number);
    return [{ shape: shape.with(-1, k), dtype: "uint32" }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const input = inputs[0] as Operand;
    const columns = input.shape.at(-1) as number;
    const rows = input.length / columns;
    kernels.topK(target, { input, out: outputs[0] as Operand }, { rows, columns, ...attributes });
  },
  backward: "none",
});
