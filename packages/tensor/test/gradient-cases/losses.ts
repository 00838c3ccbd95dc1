import type { Runtime, Tensor } from "../../src/index.js";
import * as ops from "../../src/ops/index.js";
import type { GradientCase } from "../gradient-check.js";
import {
  type FamilyCases,
  labels,
  type OpCases,
  on,
  positive,
  type Shape,
  size,
} from "./builders.js";

const matrix: Shape = [2, 3];

const checked = (...cases: readonly GradientCase[]): OpCases => ({ second: "checked", cases });

/** A loss of an input and a target, of which both have gradients. */
const pair = (
  name: string,
  apply: (x: Tensor, t: Tensor) => Tensor,
  make?: typeof positive,
): GradientCase => on(name, [matrix, matrix], ([x, t]) => apply(x as Tensor, t as Tensor), make);

/** A loss against targets of 1 and −1. */
const signed = (
  name: string,
  shapes: readonly Shape[],
  apply: (inputs: readonly Tensor[], target: Tensor) => Tensor,
  targets: Shape = shapes[0] as Shape,
): GradientCase =>
  on(name, shapes, (inputs, runtime) => {
    const target = Float32Array.from({ length: size(targets) }, (_, i) => (i % 2 === 0 ? 1 : -1));
    return apply(inputs, runtime.tensor(target, targets));
  });

/** Numbers between 0.25 and 0.75. */
const probable: typeof positive = (shape, seed) => ({
  shape,
  values: positive(shape, seed).values.map((value) => value / 2),
});

const integers = (runtime: Runtime, values: readonly number[]): Tensor =>
  runtime.tensor(Uint32Array.from(values), [2, 3]);

/** A function of emissions [2, 3, 3], starts, ends and transitions. */
const crf = (apply: (x: Tensor, weights: ops.CrfWeights, runtime: Runtime) => Tensor): OpCases => ({
  second: "refused",
  cases: [
    on("a chain", [[2, 3, 3], [3], [3], [3, 3]], ([x, start, end, transitions], runtime) =>
      apply(
        x as Tensor,
        { start: start as Tensor, end: end as Tensor, transitions: transitions as Tensor },
        runtime,
      ),
    ),
  ],
});

/** Losses of elements, of pairs and of classes; their values are torch's in test/torch-losses.test.ts. */
export const lossCases: FamilyCases = {
  crfLogPartition: crf((x, weights) => ops.crfLogPartition(x, weights)),
  crfLoss: crf((x, weights, runtime) =>
    ops.crfLoss(x, integers(runtime, [0, 2, 1, 1, 9, 9]), weights, {
      mask: integers(runtime, [1, 1, 1, 1, 0, 0]),
    }),
  ),
  l1Loss: checked(pair("mean", ops.l1Loss)),
  mseLoss: checked(
    pair("mean", ops.mseLoss),
    pair("sum", (x, t) => ops.mseLoss(x, t, { reduction: "sum" })),
    pair("none", (x, t) => ops.mseLoss(x, t, { reduction: "none" })),
  ),
  smoothL1Loss: checked(pair("beta 0.7", (x, t) => ops.smoothL1Loss(x, t, { beta: 0.7 }))),
  huberLoss: checked(pair("delta 0.7", (x, t) => ops.huberLoss(x, t, { delta: 0.7 }))),
  klDiv: checked(
    pair("probabilities", ops.klDiv, positive),
    pair("logarithms", (x, t) => ops.klDiv(x, t, { logTarget: true, reduction: "batchMean" })),
  ),
  poissonNllLoss: checked(
    pair("log input", ops.poissonNllLoss),
    pair("rate", (x, t) => ops.poissonNllLoss(x, t, { logInput: false, full: true }), positive),
  ),
  gaussianNllLoss: checked(
    on(
      "variance",
      [matrix, matrix, matrix],
      ([x, t, v]) => ops.gaussianNllLoss(x as Tensor, t as Tensor, v as Tensor),
      positive,
    ),
  ),
  binaryCrossEntropyWithLogits: checked(
    pair("plain", ops.binaryCrossEntropyWithLogits),
    on("weights", [matrix, matrix], ([x, t], runtime) =>
      ops.binaryCrossEntropyWithLogits(x as Tensor, t as Tensor, {
        weight: runtime.tensor([0.5, 2, 1]),
        posWeight: runtime.tensor([3, 1, 0.2]),
      }),
    ),
  ),
  binaryCrossEntropy: checked(pair("probabilities", ops.binaryCrossEntropy, probable)),
  softMarginLoss: checked(
    signed("signs", [matrix], ([x], t) => ops.softMarginLoss(x as Tensor, t)),
  ),
  hingeEmbeddingLoss: checked(
    signed("signs", [matrix], ([x], t) => ops.hingeEmbeddingLoss(x as Tensor, t)),
  ),
  marginRankingLoss: checked(
    signed("signs", [[4], [4]], ([a, b], t) =>
      ops.marginRankingLoss(a as Tensor, b as Tensor, t, { margin: 0.3 }),
    ),
  ),
  cosineEmbeddingLoss: checked(
    signed(
      "signs",
      [
        [4, 3],
        [4, 3],
      ],
      ([a, b], t) => ops.cosineEmbeddingLoss(a as Tensor, b as Tensor, t),
      [4],
    ),
  ),
  tripletMarginLoss: checked(
    ...([1, 2, 3] as const).map((p) =>
      on(`p ${p}`, [matrix, matrix, matrix], ([a, b, c]) =>
        ops.tripletMarginLoss(a as Tensor, b as Tensor, c as Tensor, { p, swap: p === 2 }),
      ),
    ),
  ),
  multiMarginLoss: checked(
    ...([1, 2] as const).map((p) =>
      on(`p ${p}`, [[3, 4]], ([x], runtime) =>
        ops.multiMarginLoss(x as Tensor, labels(runtime, 3, 4), { p, margin: 0.6 }),
      ),
    ),
  ),
  multilabelMarginLoss: checked(
    on("lists", [[2, 4]], ([x], runtime) =>
      ops.multilabelMarginLoss(
        x as Tensor,
        runtime.tensor(Uint32Array.from([1, 3, -1, 0, 2, -1, -1, -1]), [2, 4]),
      ),
    ),
  ),
  cosineSimilarity: checked(
    pair("rows", (a, b) => ops.cosineSimilarity(a, b)),
    on(
      "another axis",
      [
        [3, 2],
        [3, 2],
      ],
      ([a, b]) => ops.cosineSimilarity(a as Tensor, b as Tensor, { axis: 0 }),
    ),
    on(
      "broadcast",
      [
        [2, 1, 3],
        [2, 3],
      ],
      ([a, b]) => ops.cosineSimilarity(a as Tensor, b as Tensor, { axis: -1 }),
    ),
  ),
  cdist: checked(
    ...[1, 2, 3].map((p) =>
      on(
        `p ${p}`,
        [
          [2, 3],
          [2, 2, 3],
        ],
        ([a, b]) => ops.cdist(a as Tensor, b as Tensor, p),
      ),
    ),
  ),
  pdist: checked(on("rows", [[4, 3]], ([x]) => ops.pdist(x as Tensor))),
  renorm: checked(
    on("some of the slices", [[3, 4]], ([x]) => ops.renorm(x as Tensor, 2, 0, 1.2)),
    on("middle axis", [[2, 3, 2]], ([x]) => ops.renorm(x as Tensor, 1, 1, 2)),
  ),
  dist: checked(pair("p 2", (a, b) => ops.dist(a, b))),
};
