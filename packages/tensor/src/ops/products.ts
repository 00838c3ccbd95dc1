import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { matmul } from "./matmul.js";

type Product = Composite<(a: Tensor, b: Tensor) => Tensor>;

/** A product that takes factors of these ranks only. */
const productOf = (name: string, ranks: readonly [number, number]): Product =>
  composite(
    { name, castPolicy: "lowerPrecision", parameters: { a: kinds.tensor, b: kinds.tensor } },
    (a: Tensor, b: Tensor): Tensor => {
      requireRanks(name, [a, b], ranks);
      if (a.rank === 3 && a.shape[0] !== b.shape[0])
        throw new ShapeError(
          `${name}: lhs [${a.shape}] and rhs [${b.shape}] have different batches; matmul() broadcasts them`,
        );
      return matmul(a, b);
    },
  );

/** Product of matrices [m, k] and [k, n], as torch.mm. */
export const mm: Product = productOf("mm", [2, 2]);

/** Product of a matrix [m, k] and a vector [k], as torch.mv. */
export const mv: Product = productOf("mv", [2, 1]);

/** Products of matrices [batch, m, k] and [batch, k, n], as torch.bmm. */
export const bmm: Product = productOf("bmm", [3, 3]);

/** Options of {@link addmm} and its kin. */
export interface AddProductOptions {
  /** Factor of the tensor that is added to; 0 ignores its elements, NaN included. Default 1. */
  readonly beta?: number;
  /** Factor of the product. Default 1. */
  readonly alpha?: number;
}

type AddProduct = Composite<
  (input: Tensor, a: Tensor, b: Tensor, options?: AddProductOptions) => Tensor
>;

/** beta · input + alpha · product, added in float32 and rounded once. */
const addProductOf = (
  name: string,
  ranks: readonly [number, number],
  multiply: (a: Tensor, b: Tensor) => Tensor,
): AddProduct =>
  composite(
    {
      name,
      castPolicy: "lowerPrecision",
      parameters: {
        input: kinds.tensor,
        a: kinds.tensor,
        b: kinds.tensor,
        options: kinds.optionals({ beta: kinds.number, alpha: kinds.number }),
      },
    },
    (
      input: Tensor,
      a: Tensor,
      b: Tensor,
      { beta = 1, alpha = 1 }: AddProductOptions = {},
    ): Tensor => {
      requireRanks(name, [a, b], ranks);
      const product = multiply(a, b);
      const scaled = alpha === 1 ? product : product.mul(alpha);
      const expanded =
        input.shape.join() === scaled.shape.join() ? input : input.expand(scaled.shape);
      if (beta === 0) return castTo(scaled, a.dtype);
      const added = castTo(expanded, "float32");
      return castTo(scaled.add(beta === 1 ? added : added.mul(beta)), a.dtype);
    },
  );

const unrounded = { dtype: "float32" } as const;

/** beta · input + alpha · a b with a [m, k], b [k, n], and an input that broadcasts to [m, n], as torch.addmm. */
export const addmm: AddProduct = addProductOf("addmm", [2, 2], (a, b) => matmul(a, b, unrounded));

/** beta · input + alpha · a b with a matrix a [m, k] and a vector b [k], as torch.addmv. */
export const addmv: AddProduct = addProductOf("addmv", [2, 1], (a, b) => matmul(a, b, unrounded));

/** beta · input + alpha · a bᵀ with vectors a [m] and b [n], as torch.addr. */
export const addr: AddProduct = addProductOf("addr", [1, 1], (a, b) =>
  matmul(a.reshape([-1, 1]), b.reshape([1, -1]), unrounded),
);

/** beta · input + alpha · a b with a [batch, m, k] and b [batch, k, n], as torch.baddbmm. */
export const baddbmm: AddProduct = addProductOf("baddbmm", [3, 3], (a, b) =>
  matmul(a, b, unrounded),
);

/** beta · input + alpha · Σ a[i] b[i] with a [batch, m, k] and b [batch, k, n], as torch.addbmm. */
export const addbmm: AddProduct = addProductOf("addbmm", [3, 3], (a, b) => {
  const [entries, m, k] = a.shape as [number, number, number];
  const [other, inner, n] = b.shape as [number, number, number];
  if (entries !== other || k !== inner)
    throw new ShapeError(
      `addbmm: lhs [${a.shape}] and rhs [${b.shape}] need the same batch, and inner sizes that match`,
    );
  const rows = a.permute([1, 0, 2]).reshape([m, entries * k]);
  return matmul(rows, b.reshape([entries * k, n]), unrounded);
});

/** Product of matrices, in the order of multiplication that takes the fewest operations, as torch.chain_matmul. */
export const chainMatmul: Composite<(...matrices: readonly Tensor[]) => Tensor> = composite(
  {
    name: "chainMatmul",
    castPolicy: "lowerPrecision",
    parameters: { matrices: kinds.rest(kinds.tensor) },
  },
  (...matrices: readonly Tensor[]): Tensor => {
    const [first] = matrices;
    if (!first) throw new ShapeError("chainMatmul needs at least one matrix");
    requireRanks(
      "chainMatmul",
      matrices,
      matrices.map(() => 2),
    );
    const sizes = [first.shape[0] as number, ...matrices.map(({ shape }) => shape[1] as number)];
    const splits = cheapestSplits(sizes);
    const multiply = (from: number, to: number): Tensor => {
      if (from === to) return matrices[from] as Tensor;
      const at = splits.get(`${from},${to}`) as number;
      return matmul(multiply(from, at), multiply(at + 1, to));
    };
    return multiply(0, matrices.length - 1);
  },
);

/** Where to split each run of matrices, [sizes[i], sizes[i + 1]] being matrix i (Cormen et al., "Matrix-chain multiplication"). */
function cheapestSplits(sizes: readonly number[]): ReadonlyMap<string, number> {
  const count = sizes.length - 1;
  const splits = new Map<string, number>();
  const costs = new Map<string, number>();
  for (let length = 2; length <= count; length++)
    for (let from = 0; from + length <= count; from++) {
      const to = from + length - 1;
      let least = Infinity;
      for (let at = from; at < to; at++) {
        const outer =
          (sizes[from] as number) * (sizes[at + 1] as number) * (sizes[to + 1] as number);
        const cost =
          outer + (costs.get(`${from},${at}`) ?? 0) + (costs.get(`${at + 1},${to}`) ?? 0);
        if (cost >= least) continue;
        least = cost;
        splits.set(`${from},${to}`, at);
      }
      costs.set(`${from},${to}`, least);
    }
  return splits;
}

function requireRanks(name: string, factors: readonly Tensor[], ranks: readonly number[]): void {
  if (factors.every(({ rank }, i) => rank === ranks[i])) return;
  throw new ShapeError(
    `${name} needs factors of ${ranks.join(" and ")} dimensions, not ${factors.map(({ shape }) => `[${shape}]`).join(" and ")}; matmul() takes any`,
  );
}
