import { backward } from "../backward/backward.js";
import {
  amax,
  cat,
  eq,
  flip,
  gt,
  indexSelect,
  matmul,
  maxPool2d,
  topK,
  where,
} from "../ops/index.js";
import { sum } from "../ops/sums.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";

/** The computation of a step. Its numbers are exact in float32, in any order of additions. */
export interface Program {
  readonly name: string;
  /**
   * Makes the state that outlives steps and returns the step. `factor` scales the results and does not change the plan.
   */
  open(runtime: Runtime): (factor?: number) => Tensor[];
}

/** Multiples of 1/8 from −2 on. */
const eighths = (length: number, stride = 5): Float32Array =>
  Float32Array.from({ length }, (_, i) => ((i * stride) % 33) / 8 - 2);

const elementwise: Program = {
  name: "elementwise ops",
  open: (runtime) => {
    const bias = runtime.variable([1, -2, 0.5, 0], [4]);
    return (factor = 2) => {
      const x = runtime.tensor(eighths(24), [6, 4]);
      const y = x.add(bias).mul(factor).relu();
      return [y, y.sub(x).square(), where(gt(x, 0), x, y)];
    };
  },
};

/** Rows of whole quads: no unwritten bytes lie between rows. */
const products: Program = {
  name: "products and sums",
  open: (runtime) => {
    const weight = runtime.variable(eighths(7 * 8, 3), [7, 8]);
    return (factor = 1) => {
      const x = runtime.tensor(eighths(6 * 7), [6, 7]);
      const y = matmul(x, weight).mul(factor);
      return [y, sum(y, [0]), amax(y, [1]), y.reshape([8, 6]).permute([1, 0])];
    };
  },
};

/** Numbers that 16 and 8 bits cannot represent: every runner rounds them alike. */
const storage: Program = {
  name: "storage in 16 and 8 bits",
  open: (runtime) => {
    const half = runtime.variable(eighths(30), [30], { dtype: "float16" });
    const values = Float32Array.from({ length: 30 }, (_, i) => (i - 15) * (1 + 2 ** -9));
    return (factor = 1) => {
      const x = runtime.tensor(values).mul(factor);
      const dtypes = ["float16", "bfloat16", "float8e4m3fn", "float8e5m2"] as const;
      const rounded = dtypes.map((dtype) => x.to(dtype));
      half.assign(x.add(1));
      return [...rounded, cat(rounded.slice(0, 2).map((each) => each.to("float32"))), half.add(0)];
    };
  },
};

const integers: Program = {
  name: "integers",
  open: (runtime) => {
    const table = runtime.variable(Int32Array.from([7, -1, 2 ** 31 - 1, 5]), [4]);
    return () => {
      const indices = runtime.tensor(Uint32Array.from([3, 2, 1, 0, 2]));
      const { values, indices: places } = topK(runtime.tensor([3, 1, 2, 5]), 3);
      return [indexSelect(table, 0, indices), eq(indices, 2), values, places];
    };
  },
};

const training: Program = {
  name: "training",
  open: (runtime) => {
    const weight = runtime.variable([0.5, -1, 1.5, 2], [2, 2], { requiresGrad: true });
    return (factor = 1) => {
      const x = runtime.tensor([1, -1, 2, 0, -1, 1], [3, 2]);
      const loss = sum(matmul(x, weight).sub(1).square());
      backward(loss);
      if (weight.grad) weight.assign(weight.sub(weight.grad.mul(factor / 8)));
      weight.zeroGrad();
      return [loss, weight.mul(1)];
    };
  },
};

const images: Program = {
  name: "images",
  open: (runtime) => () => {
    const x = runtime.tensor(eighths(2 * 4 * 4 * 3), [2, 4, 4, 3]);
    return [maxPool2d(x, { window: 2 }), flip(x, [1, 2])];
  },
};

const unlaunched: Program = {
  name: "results that nothing launches for",
  open: (runtime) => () => [
    runtime.tensor([1, 2, 3]),
    runtime.tensor([], [0]),
    runtime.tensor(eighths(8)).mul(0.5),
  ],
};

export const programs: readonly Program[] = [
  ...[elementwise, products, storage, integers, training, images, unlaunched],
];

/** Doubles a value and adds 1, in one launch each where nothing is fused. */
export const chain: Program = {
  name: "a chain",
  open: (runtime) => () => [runtime.tensor([1, 2, 3, 4]).mul(2).add(1)],
};
