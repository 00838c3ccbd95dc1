import { expect, test } from "vitest";
import type { Tensor } from "../src/index.js";
import * as ops from "../src/ops/index.js";
import { type GoldenFunction, goldenMismatches, readGolden } from "./golden.js";

type Convolution = (x: Tensor, w: Tensor, b?: Tensor, options?: object) => Tensor;

const convolution =
  (apply: Convolution): GoldenFunction =>
  ([x, w, b], options) =>
    apply(x as Tensor, w as Tensor, b, options);

const functions: Readonly<Record<string, GoldenFunction>> = {
  conv1d: convolution(ops.conv1d),
  conv2d: convolution(ops.conv2d),
  convTranspose1d: convolution(ops.convTranspose1d),
  convTranspose2d: convolution(ops.convTranspose2d),
  layerNorm: ([x, w, b]) => ops.layerNorm(x as Tensor, (w as Tensor).shape, w, b),
  rmsNorm: ([x, w]) => ops.rmsNorm(x as Tensor, (w as Tensor).shape, w),
  groupNorm: ([x, w, b], { groups }) => ops.groupNorm(x as Tensor, groups as number, w, b),
  scaledDotProductAttention: ([q, k, v], options) =>
    ops.scaledDotProductAttention(q as Tensor, k as Tensor, v as Tensor, options),
};

const cases = readGolden("torch-layers");

test("every function has vectors", () => {
  expect(new Set(cases.map(({ op }) => op))).toEqual(new Set(Object.keys(functions)));
});

test.each(Object.entries(functions))("%s and its gradients are torch's", async (name, apply) => {
  const found: string[] = [];
  for (const check of cases.filter(({ op }) => op === name))
    found.push(...(await goldenMismatches(check, apply)));
  expect(found).toEqual([]);
});
