import type { Binding, Kernel, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import { isFloat8 } from "@halfstep/formats/dtypes";
import { BySizes } from "./by-sizes.js";
import { defineWovenKernel } from "./kernel.js";
import { type BlockSize, blockSize } from "./matmul/block-size.js";
import { byEngine } from "./matmul/by-engine.js";
import { type MatmulLayout, matmulContraction, matmulFactors } from "./matmul/contraction.js";
import { groupOf } from "./matmul/copies.js";
import { type RowSumsSupport, rowSumsLength } from "./matmul/row-sums.js";
import { type ProductPlan, planProduct } from "./matmul/shape.js";
import { launchProduct, type ProductResults } from "./matmul/split-k.js";
import { requireTarget } from "./operands.js";

/** Operands of a matrix product. */
export interface MatmulOperands<B> {
  /** [batch, m, k], or [batch, k, m] with `transA`; without the batch dimension it is used for every entry. */
  readonly a: Binding<B>;
  /** [batch, k, n], or [batch, n, k] with `transB`; without the batch dimension it is used for every entry. */
  readonly b: Binding<B>;
  /** [batch, m, n] */
  readonly out: Binding<B>;
}

/** Sizes of a product [batch, m, k] · [batch, k, n], and which factors are transposed. */
export interface MatmulAttributes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Default 1. */
  readonly batch?: number;
  readonly transA?: boolean;
  readonly transB?: boolean;
}

/**
 * out = op(a) · op(b) for row-major contiguous matrices of any shape, accumulated in float32. Small results with a large k
 * are computed in parts that a second launch adds up from scratch memory.
 *
 * @throws RangeError where lengths and shape disagree. TypeError without a target.
 */
export function matmul<B>(
  target: LaunchTarget<B>,
  operands: MatmulOperands<B>,
  attributes: MatmulAttributes,
): void {
  requireTarget("matmul", target);
  launchMatmul(target, operands, attributes);
}

/** {@link matmul}, and the `sums` of the left factor's rows where they are given. */
export function launchMatmul<B>(
  target: LaunchTarget<B>,
  { a, b, out }: MatmulOperands<B>,
  { m, n, k, batch = 1, transA = false, transB = false }: MatmulAttributes,
  rows?: { readonly sums: Binding<B>; readonly support: RowSumsSupport },
): void {
  if (out.length !== batch * m * n) wrongLength("out", out.length, [batch * m * n], [batch, m, n]);
  if (a.length !== batch * m * k && a.length !== m * k)
    wrongLength("a", a.length, [batch * m * k, m * k], transA ? [batch, k, m] : [batch, m, k]);
  if (b.length !== batch * k * n && b.length !== k * n)
    wrongLength("b", b.length, [batch * k * n, k * n], transB ? [batch, n, k] : [batch, k, n]);
  const product: Product = {
    m,
    n,
    k,
    batch,
    transA,
    transB,
    repeatsA: batch > 1 && a.length !== batch * m * k,
    repeatsB: batch > 1 && b.length !== batch * k * n,
    rowSums: rows?.support,
    isFloat8: isFloat8(out.dtype),
    hardwareClass: target.hardwareClass,
  };
  const { plan, kernel, scalars } =
    decisions.known(m, n, k, product) ?? decisions.make(m, n, k, product);
  const launch = (to: ProductResults<B>): Launch<B> => ({
    kernel,
    bindings: to.rowSums ? [a, b, to.rowSums, to.out] : [a, b, to.out],
    scalars,
  });
  launchProduct(
    target,
    plan,
    { out, rowSums: rows?.sums },
    product,
    launch,
    rows?.support.sumParts,
  );
}

/** All that a product's launches depend on besides their memory. */
interface Product extends Required<MatmulAttributes> {
  /** Whether the batch has one left factor for all its entries. */
  readonly repeatsA: boolean;
  readonly repeatsB: boolean;
  readonly rowSums: RowSumsSupport | undefined;
  readonly isFloat8: boolean;
  readonly hardwareClass: string | undefined;
}

interface Decision {
  readonly plan: ProductPlan;
  readonly kernel: Kernel;
  readonly scalars: Readonly<Record<string, number>>;
}

/** The decisions of products, made once each. */
const decisions = new BySizes<Product, Decision>(
  decide,
  (a, b) =>
    a.batch === b.batch &&
    a.transA === b.transA &&
    a.transB === b.transB &&
    a.repeatsA === b.repeatsA &&
    a.repeatsB === b.repeatsB &&
    a.rowSums === b.rowSums &&
    a.isFloat8 === b.isFloat8 &&
    a.hardwareClass === b.hardwareClass,
);

function decide(product: Product): Decision {
  const { m, n, k, batch, transA, transB, rowSums, hardwareClass } = product;
  const shapePlan = planProduct(m, n, k, batch, { stride: transA ? 0 : k, hardwareClass });
  const plan = product.isFloat8 ? inQuads(shapePlan, n) : shapePlan;
  const size = blockSize(m, n, k, batch * plan.splits);
  const layout = {
    transA,
    transB,
    isAlignedM: !transA || m % 4 === 0,
    isAlignedN: plan.isAligned,
    isAlignedK: k % 4 === 0,
    groupA: size ? groupOf(transA ? m : k) : (1 as const),
    groupB: size ? groupOf(transB ? k : n) : (1 as const),
    rowSums,
  };
  const scalars = {
    m,
    n,
    k,
    columns: plan.columns,
    splits: plan.splits,
    slices: batch * plan.splits,
    a_batch: batch > 1 && !product.repeatsA ? m * k : 0,
    b_batch: batch > 1 && !product.repeatsB ? k * n : 0,
    a_stride: transA ? m : k,
    b_stride: transB ? k : n,
  };
  return { plan, kernel: matmulKernel(plan, layout, size), scalars };
}

/**
 * The same plan for 8-bit results: they are stored in whole quads or element by element, because pairs are not supported.
 */
const inQuads = (plan: ProductPlan, n: number): ProductPlan =>
  n % 4 === 0
    ? { ...plan, width: 4, isAligned: true, columns: n / 4 }
    : { ...plan, isAligned: false };

export function wrongLength(
  name: string,
  length: number,
  allowed: readonly number[],
  shape: readonly number[],
): never {
  throw new RangeError(
    `matmul: ${name} has ${length} elements, but its shape is [${shape}]: pass a binding of ${allowed.join(" or ")}`,
  );
}

/** Scalars of the loop over k come first: llvmpipe loads four at a time, and a second load makes a product 5 % slower. */
const scalarNames = [
  ...["a_stride", "b_stride", "k", "columns", "m", "n"],
  ...["splits", "slices", "a_batch", "b_batch"],
];

const kernels = new Map<string, Kernel>();

function matmulKernel(
  { rows, width }: ProductPlan,
  layout: MatmulLayout,
  size: BlockSize | undefined,
): Kernel {
  const { transA, transB, isAlignedM, isAlignedN, isAlignedK, rowSums } = layout;
  const groups = `${layout.groupA}·${layout.groupB}`;
  const aligned = `${isAlignedM ? "m" : ""}${isAlignedN ? "n" : ""}${isAlignedK ? "k" : ""}`;
  const variant = `${transA ? "t" : "n"}${transB ? "t" : "n"},${rows}x${width},${aligned}${size ? `,${size} ${groups}` : ""}${rowSums ? ",row sums" : ""}`;
  let kernel = kernels.get(variant);
  if (!kernel) {
    const shape = { rows, width };
    kernel = defineWovenKernel({
      name: "matmul",
      variant,
      bindings: [
        { name: "a", access: "read" },
        { name: "b", access: "read", unit: transB ? 4 : width },
        ...(rowSums ? [{ name: "row_sums", access: "write" } as const] : []),
        { name: "out", access: "write", unit: width },
      ],
      scalars: scalarNames.map((name) => ({ name, type: "u32" })),
      weavesEpilogue: true,
      ...(rowSums && { storedOnce: ["row_sums"] }),
      hasFactorRows: true,
      ...byEngine({
        shape,
        contraction: matmulContraction(shape, layout),
        blocks: size && { size, factors: matmulFactors(width, layout) },
      }),
      reference: (views, scalars) => matmulReference(views, scalars, layout, width),
      operations: ({ m = 0, n = 0, k = 0, slices = 0, splits = 1 }) =>
        (2 * m * n * k * slices) / splits,
    });
    kernels.set(variant, kernel);
  }
  return kernel;
}

function matmulReference(
  views: readonly KernelView[],
  scalars: Readonly<Record<string, number>>,
  { transA, transB, rowSums: support }: MatmulLayout,
  width: number,
): void {
  const [a, b, rowSums] = views;
  const out = views.at(-1);
  if (!a || !b || !out) return;
  const { m, n, k, columns, splits, slices } = scalars as Record<
    "m" | "n" | "k" | "columns" | "splits" | "slices",
    number
  >;
  const [aStride, bStride] = [scalars.a_stride, scalars.b_stride] as [number, number];
  const stride = columns * width;
  const sums = new Float64Array(n);
  for (let slice = 0; slice < slices; slice++) {
    const batch = Math.floor(slice / splits);
    const [first, last] = partOf(k, slice % splits, splits);
    const aStart = batch * (scalars.a_batch as number);
    const bStart = batch * (scalars.b_batch as number);
    const [aStep, aRow] = transA ? [aStride, 1] : [1, aStride];
    for (let i = 0; i < m; i++) {
      sums.fill(0);
      if (support && rowSums) {
        let sum = 0;
        for (let p = first; p < last; p++) sum += a[p * aStride + i] as number;
        rowSums[slice * rowSumsLength(m) + i] = sum;
      }
      if (transB)
        for (let j = 0; j < n; j++) {
          const row = bStart + j * bStride;
          let sum = 0;
          for (let p = first; p < last; p++)
            sum += (a[aStart + i * aRow + p * aStep] as number) * (b[row + p] as number);
          sums[j] = sum;
        }
      else
        for (let p = first; p < last; p++) {
          const x = a[aStart + i * aRow + p * aStep] as number;
          const row = bStart + p * bStride;
          for (let j = 0; j < n; j++) sums[j] = (sums[j] as number) + x * (b[row + j] as number);
        }
      out.set(sums, (slice * m + i) * stride);
    }
  }
}

/** The range of k that a part covers: whole steps of four. */
function partOf(k: number, part: number, parts: number): readonly [number, number] {
  const depth = Math.ceil(Math.ceil(k / 4) / parts) * 4;
  return [Math.min(k, part * depth), Math.min(k, (part + 1) * depth)];
}
