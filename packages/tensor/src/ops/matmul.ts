import { DTypeError } from "@halfstep/autocast";
import type { DType, LaunchTarget } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { elementwise, identity, matmul as matmulLaunch } from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import {
  type CallableOp,
  callable,
  defineOp,
  type Op,
  type Operand,
  type TensorSpec,
} from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Storage } from "../record/storage.js";
import type { Tensor } from "../tensor/tensor.js";
import { broadcastShapes } from "./pointwise.js";
import { sumTo } from "./sums.js";

/** Options of {@link matmul}. */
export interface MatmulOptions {
  /** Use the transpose of the last two dimensions of a. Default false. */
  readonly transA?: boolean;
  /** Use the transpose of the last two dimensions of b. Default false. */
  readonly transB?: boolean;
  /** The dtype of the product. Default: that of the factors. "float32" stores the float32 sums of 16-bit factors unrounded. */
  readonly dtype?: DType;
}

interface MatmulShape {
  /** Batch dimensions of the first factor. */
  readonly batchA: readonly number[];
  readonly batchB: readonly number[];
  /** The batch dimensions that both broadcast to. */
  readonly batch: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

const product = (shape: readonly number[]): number => shape.reduce((x, y) => x * y, 1);

/** The shape of a factor as a matrix: a vector is a row on the left of a product and a column on the right. */
const rowOf = (shape: readonly number[]): readonly number[] =>
  shape.length === 1 ? [1, ...shape] : shape;
const columnOf = (shape: readonly number[]): readonly number[] =>
  shape.length === 1 ? [...shape, 1] : shape;

type Shaped = Pick<TensorSpec, "shape">;

const noBatch: readonly number[] = [];

/** The shape without the dimensions of the matrices. */
const batchOf = (shape: readonly number[]): readonly number[] =>
  shape.length === 2 ? noBatch : shape.slice(0, -2);

function shapeOf(a: Shaped, b: Shaped, options: MatmulOptions): MatmulShape {
  const { transA, transB } = options;
  if (a.shape.length === 0 || b.shape.length === 0)
    refuse(a, b, options, "both need at least one dimension; multiply by a number with mul()");
  if ((transA && a.shape.length === 1) || (transB && b.shape.length === 1))
    refuse(a, b, options, "a vector has no transpose");
  const [left, right] = [rowOf(a.shape), columnOf(b.shape)];
  const [a0, a1] = [left.at(-2), left.at(-1)] as [number, number];
  const [b0, b1] = [right.at(-2), right.at(-1)] as [number, number];
  const [m, k] = transA ? [a1, a0] : [a0, a1];
  const [inner, n] = transB ? [b1, b0] : [b0, b1];
  if (k !== inner) refuse(a, b, options, `inner sizes ${k} and ${inner} differ`);
  const [batchA, batchB] = [batchOf(left), batchOf(right)];
  return { batchA, batchB, batch: broadcastShapes("matmul", batchA, batchB), m, n, k };
}

function refuse(a: Shaped, b: Shaped, { transA, transB }: MatmulOptions, why: string): never {
  throw new ShapeError(
    `matmul: lhs [${a.shape}]${transA ? " transposed" : ""}, rhs [${b.shape}]${transB ? " transposed" : ""}: ${why}`,
  );
}

const matmulOp: Op<MatmulOptions> = defineOp<MatmulOptions>({
  name: "matmul",
  castPolicy: "lowerPrecision",
  shape([a, b], options) {
    const lhs = a as TensorSpec;
    const rhs = b as TensorSpec;
    if (lhs.dtype !== rhs.dtype)
      throw new DTypeError(`matmul: lhs is ${lhs.dtype}, rhs is ${rhs.dtype}; cast one with to()`);
    const { batch, m, n } = shapeOf(lhs, rhs, options);
    const shape = [
      ...batch,
      ...(lhs.shape.length === 1 ? [] : [m]),
      ...(rhs.shape.length === 1 ? [] : [n]),
    ];
    return [{ shape, dtype: options.dtype ?? lhs.dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [a, b] = inputs as [Operand, Operand];
    const { batchA, batchB, batch, m, n, k } = shapeOf(a, b, attributes);
    const { transA = false, transB = false } = attributes;
    const entries = product(batch);
    const out = outputs[0] as Operand;
    // One factor for all entries: the entries' rows are the rows of one larger product.
    if (product(batchB) === 1 && !transA)
      matmulLaunch(target, { a, b, out }, { m: entries * m, n, k, transA, transB });
    else
      matmulLaunch(
        target,
        { a: entriesOf(target, a, batchA, batch), b: entriesOf(target, b, batchB, batch), out },
        { batch: entries, m, n, k, transA, transB },
      );
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [x, y] = inputs as [Tensor, Tensor];
    const { transA = false, transB = false } = attributes;
    const { batch, m, n } = shapeOf(x, y, attributes);
    const a = x.rank === 1 ? x.reshape(rowOf(x.shape)) : x;
    const b = y.rank === 1 ? y.reshape(columnOf(y.shape)) : y;
    const g = castTo((gradients[0] as Tensor).reshape([...batch, m, n]), a.dtype);
    const gradA = (): Tensor =>
      transA ? matmul(b, g, { transA: transB, transB: true }) : matmul(g, b, { transB: !transB });
    const gradB = (): Tensor => {
      if (b.rank === 2 && a.rank > 2 && !transA) return sharedFactorGradient(a, g, transB);
      return transB
        ? matmul(g, a, { transA: true, transB: transA })
        : matmul(a, g, { transA: !transA });
    };
    return [
      needs[0] ? sumTo(gradA(), a.shape).reshape(x.shape) : undefined,
      needs[1] ? sumTo(gradB(), b.shape).reshape(y.shape) : undefined,
    ];
  },
});

/**
 * Matrix product as torch.matmul: over the last two dimensions, with batch dimensions that broadcast. A vector on the left is a
 * row and one on the right a column; its dimension is missing in the result.
 *
 * ```ts
 * const y = matmul(x, weight, { transB: true });
 * ```
 *
 * @throws ShapeError where the inner sizes differ
 */
export const matmul: CallableOp<
  (a: Tensor, b: Tensor, options?: MatmulOptions) => Tensor,
  MatmulOptions
> = callable(
  matmulOp,
  {
    a: kinds.tensor,
    b: kinds.tensor,
    options: kinds.optionals({ transA: kinds.flag, transB: kinds.flag, dtype: kinds.dtype }),
  },
  (a: Tensor, b: Tensor, options: MatmulOptions = {}) => matmulOp.apply([a, b], options),
);

/** A factor as the kernel takes it: one entry for all, or as many entries as the result has, some of them repeated. */
function entriesOf(
  target: LaunchTarget<Storage>,
  factor: Operand,
  own: readonly number[],
  batch: readonly number[],
): Operand {
  const entries = product(own);
  if (entries === 1 || entries === product(batch)) return factor;
  const shape = [...batch, factor.length / entries];
  const length = product(shape);
  const { dtype } = factor;
  const buffer = target.allocate(bytesFor(dtype, length));
  const repeated: Operand = { buffer, offset: 0, length, dtype, shape };
  const source = { ...factor, shape: [...own, factor.length / entries] };
  target.launch(elementwise(identity, [source], repeated));
  return repeated;
}

/** Gradient of a right factor that all entries share: one product over the rows of all entries. */
function sharedFactorGradient(a: Tensor, g: Tensor, transB: boolean): Tensor {
  const count = product(a.shape.slice(0, -1));
  const rows = a.reshape([count, a.shape.at(-1) as number]);
  const gradient = g.reshape([count, g.shape.at(-1) as number]);
  return transB
    ? matmul(gradient, rows, { transA: true })
    : matmul(rows, gradient, { transA: true });
}
