import { expect, test } from "vitest";
import type { Tensor } from "../src/index.js";
import * as ops from "../src/ops/index.js";
import { type GoldenFunction, goldenMismatches, readGolden } from "./golden.js";

type Loss = (...args: never[]) => ReturnType<GoldenFunction>;

/** Calls a function of tensors and options. */
const plain =
  (loss: Loss): GoldenFunction =>
  (inputs, options) =>
    loss(...([...inputs, options] as never[]));

/** Calls a function of two tensors and the order of a norm. */
const withOrder =
  (distance: typeof ops.dist): GoldenFunction =>
  ([a, b], { p }) =>
    distance(a as Tensor, b as Tensor, p as number | undefined);

const functions: Readonly<Record<string, GoldenFunction>> = {
  crossEntropy: plain(ops.crossEntropy),
  nllLoss: plain(ops.nllLoss),
  multiMarginLoss: plain(ops.multiMarginLoss),
  multilabelMarginLoss: plain(ops.multilabelMarginLoss),
  l1Loss: plain(ops.l1Loss),
  mseLoss: plain(ops.mseLoss),
  smoothL1Loss: plain(ops.smoothL1Loss),
  huberLoss: plain(ops.huberLoss),
  klDiv: plain(ops.klDiv),
  poissonNllLoss: plain(ops.poissonNllLoss),
  gaussianNllLoss: plain(ops.gaussianNllLoss),
  binaryCrossEntropyWithLogits: plain(ops.binaryCrossEntropyWithLogits),
  binaryCrossEntropy: plain(ops.binaryCrossEntropy),
  softMarginLoss: plain(ops.softMarginLoss),
  hingeEmbeddingLoss: plain(ops.hingeEmbeddingLoss),
  marginRankingLoss: plain(ops.marginRankingLoss),
  cosineEmbeddingLoss: plain(ops.cosineEmbeddingLoss),
  tripletMarginLoss: plain(ops.tripletMarginLoss),
  cosineSimilarity: plain(ops.cosineSimilarity),
  cdist: withOrder(ops.cdist),
  dist: withOrder(ops.dist),
  pdist: ([x], { p }) => ops.pdist(x as Tensor, p as number),
  renorm: ([x], { p, axis, maxNorm }) =>
    ops.renorm(x as Tensor, p as number, axis as number, maxNorm as number),
};

const cases = readGolden("torch-losses");

test("every function has vectors", () => {
  expect(new Set(cases.map(({ op }) => op))).toEqual(new Set(Object.keys(functions)));
});

test.each(Object.entries(functions))("%s and its gradients are torch's", async (name, apply) => {
  const found: string[] = [];
  for (const check of cases.filter(({ op }) => op === name))
    found.push(...(await goldenMismatches(check, apply)));
  expect(found).toEqual([]);
});
