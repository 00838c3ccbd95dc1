import type { Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { CaseInput, GradientCase } from "../gradient-check.js";
import { type FamilyCases, type OpCases, on, reduction, signed } from "./builders.js";

const of = (
  name: string,
  apply: (x: Tensor) => Tensor,
  shape: readonly number[] = [2, 3, 2],
): GradientCase => on(name, [shape], ([x]) => apply(x as Tensor));

const checked = (...cases: OpCases["cases"]): OpCases => ({ second: "checked", cases });

const withZeros = (shape: readonly number[], seed: number): CaseInput => ({
  shape,
  values: signed(shape, seed).values.map((value, i) => (i % 3 === 1 ? 0 : value)),
});

const scans = (scan: typeof ops.cumsum): OpCases =>
  checked(
    of("along the last axis", (x) => scan(x, -1)),
    of("along the first, backwards", (x) => scan(x, 0, { reverse: true }), [3, 4]),
    of("of quads", (x) => scan(x, 1).square(), [2, 4]),
    on("with zeros", [[2, 5]], ([x]) => scan(x as Tensor, 1), withZeros),
    on("with zeros, backwards", [[5]], ([x]) => scan(x as Tensor, 0, { reverse: true }), withZeros),
  );

const norms = (norm: typeof ops.norm): OpCases =>
  checked(
    of("2", (x) => norm(x)),
    of("2 of rows", (x) => norm(x, { axes: 1, keepDimensions: true })),
    of("1", (x) => norm(x, { ord: 1, axes: [0, 2] }).square()),
    of("3", (x) => norm(x, { ord: 3, axes: -1 })),
    of("infinity", (x) => norm(x, { ord: Number.POSITIVE_INFINITY, axes: 0 }).square()),
    of("-infinity", (x) => norm(x, { ord: Number.NEGATIVE_INFINITY, axes: 0 }).square()),
  );

const extrema = (extremum: typeof ops.max): OpCases =>
  checked(
    of("last axis", (x) => extremum(x, -1).values.square()),
    of("middle axis, kept", (x) => extremum(x, 1, { keepDimensions: true }).values.square()),
  );

/** Reductions that are made of others, and running ones. */
export const statisticsCases: FamilyCases = {
  prod: {
    second: "checked",
    cases: [
      ...reduction((x, axes, keep) => ops.prod(x, axes, keep)).cases,
      on(
        "with one zero",
        [[2, 4]],
        ([x]) => ops.prod(x as Tensor, 1),
        (shape, seed) => ({
          shape,
          values: signed(shape, seed).values.with(1, 0),
        }),
      ),
      on(
        "with two zeros",
        [[4]],
        ([x]) => ops.prod(x as Tensor),
        (shape, seed) => ({
          shape,
          values: signed(shape, seed).values.with(1, 0).with(3, 0),
        }),
      ),
    ],
  },
  amax: reduction(ops.amax),
  amin: reduction(ops.amin),
  max: extrema(ops.max),
  min: extrema(ops.min),
  topK: checked(
    of("last axis", (x) => ops.topK(x, 2).values.square(), [2, 5]),
    of("smallest of the middle axis, unsorted", (x) =>
      ops.topK(x, 2, { axis: 1, largest: false, sorted: false }).values.square(),
    ),
  ),
  variance: checked(
    of("all", (x) => ops.variance(x)),
    of("of columns, biased", (x) => ops.variance(x, { axes: 0, correction: 0 }), [3, 2]),
    of("kept", (x) => ops.variance(x, { axes: [1, 2], keepDimensions: true })),
  ),
  std: checked(
    of("all", (x) => ops.std(x)),
    of("of rows", (x) => ops.std(x, { axes: -1 }), [2, 4]),
  ),
  logsumexp: checked(
    of("all", (x) => ops.logsumexp(x)),
    of("of rows, kept", (x) => ops.logsumexp(x, { axes: 1, keepDimensions: true })),
    of("of two axes", (x) => ops.logsumexp(x, { axes: [0, 2] })),
  ),
  norm: norms(ops.norm),
  linalgVectorNorm: norms(ops.linalgVectorNorm),
  cumsum: scans(ops.cumsum),
  cumprod: scans(ops.cumprod),
};
