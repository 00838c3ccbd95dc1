import { castTo } from "../src/cast.js";
import type { Op, Runtime, Tensor } from "../src/index.js";
import * as ops from "../src/ops/index.js";
import { type CaseInput, type GradientCase, numbers } from "./gradient-check.js";

type Shape = readonly number[];

interface OpCases {
  /** Whether gradients can be differentiated again: checked where they can, and refused by name where they cannot. */
  readonly second: "checked" | "refused";
  readonly cases: readonly GradientCase[];
}

const size = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

const signed = (shape: Shape, seed: number): CaseInput => ({
  shape,
  values: numbers(size(shape), seed),
});

/** Numbers between 0.5 and 1.5: for roots, logarithms and denominators. */
const positive = (shape: Shape, seed: number): CaseInput => ({
  shape,
  values: numbers(size(shape), seed).map((value) => 1 + value / 2),
});

function on(
  name: string,
  shapes: readonly Shape[],
  apply: GradientCase["apply"],
  make: (shape: Shape, seed: number) => CaseInput = signed,
): GradientCase {
  return {
    name: `${name} of ${shapes.map((shape) => `[${shape}]`).join(", ")}`,
    inputs: shapes.map((shape, i) => make(shape, i + 1)),
    apply,
  };
}

type Pair = readonly [Tensor, Tensor];
type Triple = readonly [Tensor, Tensor, Tensor];

const unary = (op: Op<null>, make = signed): OpCases => ({
  second: "checked",
  cases: [[], [5], [2, 3]].map((shape) =>
    on(op.name, [shape], ([x]) => op([x as Tensor], null), make),
  ),
});

const withNumber = (op: Op<number>): OpCases => ({
  second: "checked",
  cases: [-0.7, 0, 3].map((c) => on(`by ${c}`, [[2, 3]], ([x]) => op([x as Tensor], c))),
});

const binary = (op: Op<null>, make = signed): OpCases => ({
  second: "checked",
  cases: [
    ...(
      [
        [
          [2, 3],
          [2, 3],
        ],
        [[2, 3], [3]],
        [[3], [2, 3]],
        [[2, 3], []],
        [
          [2, 1, 3],
          [4, 1],
        ],
        [
          [1, 3],
          [2, 1],
        ],
        [[1], [2, 2]],
      ] as const
    ).map((shapes) => on(op.name, shapes, (inputs) => op(inputs, null), make)),
    on(`${op.name} with itself`, [[2, 2]], ([x]) => op([x, x] as unknown as Pair, null), make),
  ],
});

const reduction = (reduce: typeof ops.sum): OpCases => ({
  second: "checked",
  cases: (
    [
      [[2, 3], undefined, false],
      [[2, 3], 0, false],
      [[2, 3], -1, true],
      [[2, 3, 2], [0, 2], false],
      [[2, 3, 2], [1, 2], true],
      [[2, 1, 3], 1, false],
      [[], undefined, false],
    ] as const
  ).map(([shape, axes, keep]) =>
    on(`over ${axes ?? "all"}${keep ? ", kept" : ""}`, [shape], ([x]) =>
      reduce(x as Tensor, axes, keep).square(),
    ),
  ),
});

const overRows = (op: Op<null>): OpCases => ({
  second: "checked",
  cases: [[4], [3, 5], [2, 2, 3], [3, 1]].map((shape) =>
    on("over rows", [shape], ([x]) => op([x as Tensor], null)),
  ),
});

const products: OpCases = {
  second: "checked",
  cases: [
    ...[false, true].flatMap((transA) =>
      [false, true].flatMap((transB) =>
        (
          [
            [[], []],
            [[2], [2]],
            [[2], []],
            [[], [2]],
          ] as const
        ).map(([batchA, batchB]) =>
          on(
            `${transA ? "A transposed " : ""}${transB ? "B transposed" : ""}`,
            [
              [...batchA, ...(transA ? [4, 3] : [3, 4])],
              [...batchB, ...(transB ? [2, 4] : [4, 2])],
            ],
            (inputs) => ops.matmul(inputs, { transA, transB }),
          ),
        ),
      ),
    ),
    on("a matrix with itself", [[3, 3]], ([x]) => ops.matmul([x, x] as unknown as Pair, {})),
    on("a matrix with its transpose", [[2, 3]], ([x]) =>
      ops.matmul([x, x] as unknown as Pair, { transB: true }),
    ),
  ],
};

const linears: OpCases = {
  second: "checked",
  cases: [
    on(
      "no bias",
      [
        [3, 4],
        [2, 4],
      ],
      ([x, w]) => ops.linear(x as Tensor, w as Tensor),
    ),
    on("bias", [[3, 4], [2, 4], [2]], ([x, w, b]) => ops.linear(x as Tensor, w as Tensor, b)),
    on("batches", [[2, 3, 2], [4, 2], [4]], ([x, w, b]) => ops.linear(x as Tensor, w as Tensor, b)),
  ],
};

const convolution = (input: Shape, weight: Shape, options: ops.Conv2dOptions = {}): GradientCase =>
  on(JSON.stringify(options), [input, weight], ([x, w]) =>
    ops.conv2d(x as Tensor, w as Tensor, undefined, options),
  );

const convolutions: OpCases = {
  second: "checked",
  cases: [
    convolution([1, 3, 3, 1], [2, 2, 1, 1]),
    convolution([2, 4, 3, 2], [3, 3, 2, 3], { padding: 1 }),
    convolution([1, 5, 4, 2], [3, 2, 2, 2], { stride: 2, padding: [1, 0] }),
    convolution([1, 5, 6, 1], [2, 3, 1, 2], { stride: [2, 3], padding: [0, 1] }),
    convolution([1, 5, 5, 1], [2, 2, 1, 2], { dilation: 2, padding: 1 }),
    convolution([2, 2, 2, 3], [1, 1, 3, 2]),
    on("bias", [[1, 3, 3, 2], [2, 2, 2, 3], [3]], ([x, w, b]) =>
      ops.conv2d(x as Tensor, w as Tensor, b),
    ),
  ],
};

const pooling = (op: Op<ops.PoolOptions>, second: OpCases["second"]): OpCases => ({
  second,
  cases: (
    [
      [[2, 4, 4, 2], { window: 2 }],
      [[1, 5, 5, 1], { window: 2 }],
      [[1, 5, 4, 2], { window: 3, stride: 1, padding: 1 }],
      [[1, 5, 6, 1], { window: [3, 2], stride: [2, 1], padding: [1, 0] }],
    ] as const
  ).map(([shape, options]) =>
    on(JSON.stringify(options), [shape], ([x]) => op([x as Tensor], options)),
  ),
});

const labels = (runtime: Runtime, rows: number, classes: number): Tensor =>
  runtime.tensor(Uint32Array.from({ length: rows }, (_, row) => (row * 2 + 1) % classes));

const running = (runtime: Runtime): ops.RunningStatistics => ({
  mean: runtime.variable([0.2, -0.4, 1], [3]),
  variance: runtime.variable([0.5, 2, 1.3], [3]),
});

/** Every differentiable op, by the name under which `ops/index.ts` exports it. */
export const gradientCases: Readonly<Record<string, OpCases>> = {
  add: binary(ops.add),
  sub: binary(ops.sub),
  mul: binary(ops.mul),
  div: binary(ops.div, positive),
  scale: withNumber(ops.scale),
  addScalar: withNumber(ops.addScalar),
  exp: unary(ops.exp),
  log: unary(ops.log, positive),
  sqrt: unary(ops.sqrt, positive),
  square: unary(ops.square),
  reciprocal: unary(ops.reciprocal, positive),
  tanh: unary(ops.tanh),
  sigmoid: unary(ops.sigmoid),
  relu: unary(ops.relu),
  sum: reduction(ops.sum),
  mean: reduction(ops.mean),
  sumTo: {
    second: "checked",
    cases: (
      [
        [[2, 3], [3]],
        [
          [2, 3],
          [2, 1],
        ],
        [
          [4, 2, 3],
          [1, 3],
        ],
      ] as const
    ).map(([from, to]) => on(`to [${to}]`, [from], ([x]) => ops.sumTo(x as Tensor, to))),
  },
  expand: {
    second: "checked",
    cases: (
      [
        [[3], [2, 3]],
        [
          [2, 1],
          [2, 4],
        ],
        [
          [1, 3],
          [2, 2, 3],
        ],
        [[], [2]],
      ] as const
    ).map(([from, to]) =>
      on(`to [${to}]`, [from], ([x]) => ops.expand([x as Tensor], to).square()),
    ),
  },
  reshape: {
    second: "checked",
    cases: [on("to [3, -1]", [[2, 6]], ([x]) => ops.reshape(x as Tensor, [3, -1]).square())],
  },
  permute: {
    second: "checked",
    cases: (
      [
        [
          [2, 3],
          [1, 0],
        ],
        [
          [2, 3, 4],
          [2, 0, 1],
        ],
        [
          [1, 2, 3, 2],
          [0, 3, 1, 2],
        ],
      ] as const
    ).map(([shape, order]) =>
      on(`by [${order}]`, [shape], ([x]) => ops.permute([x as Tensor], order).square()),
    ),
  },
  matmul: products,
  linear: linears,
  conv2d: convolutions,
  maxPool2d: pooling(ops.maxPool2d, "refused"),
  avgPool2d: pooling(ops.avgPool2d, "checked"),
  softmax: overRows(ops.softmax),
  logSoftmax: overRows(ops.logSoftmax),
  crossEntropy: {
    second: "checked",
    cases: (["mean", "sum", "none"] as const).flatMap((reduction) =>
      [
        [3, 4],
        [1, 5],
      ].map((shape) =>
        on(`${reduction}`, [shape], ([x], runtime) =>
          ops.crossEntropy(x as Tensor, labels(runtime, ...(shape as [number, number])), {
            reduction,
          }),
        ),
      ),
    ),
  },
  batchNorm: {
    second: "checked",
    cases: [
      [4, 3],
      [2, 2, 2, 3],
    ].map((shape) =>
      on(
        "batch statistics",
        [shape, [3], [3]],
        (inputs) => ops.batchNorm(...(inputs as Triple), { eps: 1e-3 }).output,
      ),
    ),
  },
  batchNormInference: {
    second: "checked",
    cases: [
      [4, 3],
      [1, 2, 2, 3],
    ].map((shape) =>
      on("running statistics", [shape, [3], [3]], (inputs, runtime) =>
        ops.batchNormInference(...(inputs as Triple), running(runtime), { eps: 1e-3 }),
      ),
    ),
  },
  castTo: {
    second: "checked",
    cases: [
      on("there and back", [[2, 3]], ([x]) => castTo(castTo(x as Tensor, "float16"), "float32")),
    ],
  },
};
