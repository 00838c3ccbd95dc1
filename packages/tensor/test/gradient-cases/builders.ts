import type { Op, Runtime, Tensor } from "../../src/index.js";
import type * as ops from "../../src/ops/index.js";
import { type CaseInput, type GradientCase, numbers } from "../gradient-check.js";

export type Shape = readonly number[];

export interface OpCases {
  /** Whether gradients can be differentiated again: checked where they can, and refused by name where they cannot. */
  readonly second: "checked" | "refused";
  readonly cases: readonly GradientCase[];
}

export const size = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

export const signed = (shape: Shape, seed: number): CaseInput => ({
  shape,
  values: numbers(size(shape), seed),
});

/** Numbers between 0.5 and 1.5: for roots, logarithms and denominators. */
export const positive = (shape: Shape, seed: number): CaseInput => ({
  shape,
  values: numbers(size(shape), seed).map((value) => 1 + value / 2),
});

export function on(
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

/** Gradient checks of ops, by the name under which `ops/index.ts` exports each. */
export type FamilyCases = Readonly<Record<string, OpCases>>;

export type Pair = readonly [Tensor, Tensor];
export type Triple = readonly [Tensor, Tensor, Tensor];

export const unary = (op: Op<null>, make: typeof signed = signed): OpCases => ({
  second: "checked",
  cases: [[], [5], [2, 3]].map((shape) =>
    on(op.name, [shape], ([x]) => op.apply([x as Tensor], null), make),
  ),
});

export const withNumber = (op: Op<number>): OpCases => ({
  second: "checked",
  cases: [-0.7, 0, 3].map((c) => on(`by ${c}`, [[2, 3]], ([x]) => op.apply([x as Tensor], c))),
});

export const binary = (op: Op<null>, make: typeof signed = signed): OpCases => ({
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
    ).map((shapes) => on(op.name, shapes, (inputs) => op.apply(inputs, null), make)),
    on(
      `${op.name} with itself`,
      [[2, 2]],
      ([x]) => op.apply([x, x] as unknown as Pair, null),
      make,
    ),
  ],
});

export const reduction = (reduce: typeof ops.sum): OpCases => ({
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
      reduce(x as Tensor, axes, { keepDimensions: keep }).square(),
    ),
  ),
});

export const labels = (runtime: Runtime, rows: number, classes: number): Tensor =>
  runtime.tensor(Uint32Array.from({ length: rows }, (_, row) => (row * 2 + 1) % classes));
