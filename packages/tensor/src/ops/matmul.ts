import { DTypeError } from "@halfstep/autocast";
import { matmul as matmulLaunch } from "@halfstep/kernels";
import { castTo } from "../cast.js";
import { ShapeError } from "../errors.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";
import { add } from "./elementwise.js";
import { sumTo } from "./reduce.js";

export interface MatmulOptions {
  /** Use the transpose of the last two dimensions. */
  readonly transA?: boolean;
  readonly transB?: boolean;
}

interface MatmulShape {
  readonly batch: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

function shapeOf(a: TensorSpec, b: TensorSpec, { transA, transB }: MatmulOptions): MatmulShape {
  const fail = (why: string): never => {
    throw new ShapeError(
      `matmul: lhs [${a.shape}]${transA ? " transposed" : ""}, rhs [${b.shape}]${transB ? " transposed" : ""}: ${why}`,
    );
  };
  if (a.shape.length < 2 || b.shape.length < 2) fail("both need at least two dimensions");
  const [a0, a1] = a.shape.slice(-2) as [number, number];
  const [b0, b1] = b.shape.slice(-2) as [number, number];
  const [m, k] = transA ? [a1, a0] : [a0, a1];
  const [inner, n] = transB ? [b1, b0] : [b0, b1];
  if (k !== inner) fail(`inner sizes ${k} and ${inner} differ`);
  const batchA = a.shape.slice(0, -2);
  const batchB = b.shape.slice(0, -2);
  if (batchA.length > 0 && batchB.length > 0 && batchA.join() !== batchB.join())
    fail("batch dimensions differ");
  return { batch: batchA.length > 0 ? batchA : batchB, m, n, k };
}

/** Matrix product over the last two dimensions; a factor without batch dimensions is used for every entry of the other. */
export const matmul: Op<MatmulOptions> = defineOp<MatmulOptions>({
  name: "matmul",
  castPolicy: "lowerPrecision",
  shape([a, b], options) {
    const lhs = a as TensorSpec;
    const rhs = b as TensorSpec;
    if (lhs.dtype !== rhs.dtype)
      throw new DTypeError(`matmul: lhs is ${lhs.dtype}, rhs is ${rhs.dtype}; cast one with to()`);
    const { batch, m, n } = shapeOf(lhs, rhs, options);
    return [{ shape: [...batch, m, n], dtype: lhs.dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [a, b] = inputs as [Operand, Operand];
    const { batch, m, n, k } = shapeOf(a, b, attributes);
    const { transA = false, transB = false } = attributes;
    const entries = batch.reduce((x, y) => x * y, 1);
    const out = outputs[0] as Operand;
    // One factor for all entries: the entries' rows are the rows of one larger product.
    if (b.shape.length === 2 && !transA)
      matmulLaunch(target, { a, b, out }, { m: entries * m, n, k, transA, transB });
    else matmulLaunch(target, { a, b, out }, { batch: entries, m, n, k, transA, transB });
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [a, b] = inputs as [Tensor, Tensor];
    const g = gradients[0] as Tensor;
    const { transA = false, transB = false } = attributes;
    const gradA = (): Tensor =>
      transA
        ? matmul([b, g], { transA: transB, transB: true })
        : matmul([g, b], { transB: !transB });
    const gradB = (): Tensor => {
      if (b.rank === 2 && a.rank > 2 && !transA) return sharedFactorGradient(a, g, transB);
      return transB
        ? matmul([g, a], { transA: true, transB: transA })
        : matmul([a, g], { transA: !transA });
    };
    return [
      needs[0] ? sumTo(gradA(), a.shape) : undefined,
      needs[1] ? sumTo(gradB(), b.shape) : undefined,
    ];
  },
});

/** Gradient of a right factor that all entries share: one product over the rows of all entries. */
function sharedFactorGradient(a: Tensor, g: Tensor, transB: boolean): Tensor {
  const rows = a.reshape([-1, a.shape.at(-1) as number]);
  const gradient = g.reshape([-1, g.shape.at(-1) as number]);
  return transB
    ? matmul([gradient, rows], { transA: true })
    : matmul([rows, gradient], { transA: true });
}

/** y = x Wᵀ + b with x [..., in], W [out, in] and b [out], as torch.nn.functional.linear. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const y = matmul([x, weight], { transB: true });
  return bias ? add([y, castTo(bias, y.dtype)], null) : y;
}
