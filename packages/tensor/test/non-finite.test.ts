import { expect, test } from "vitest";
import { cpuRuntime, grad, type Runtime } from "../src/index.js";
import { gradientCases } from "./gradient-cases.js";
import type { GradientCase } from "./gradient-check.js";

const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;

interface Outcome {
  readonly title: string;
  readonly bad: number;
  /** The sum of the squares of the op's result. */
  readonly loss: number;
  /** The gradient of the element that is not finite. */
  readonly own: number;
  readonly isSeen: boolean;
}

/** The outcomes of an op where the first or the last element of one of its inputs is NaN or infinite. */
function outcomes(
  runtime: Runtime,
  op: string,
  { name, inputs, apply }: GradientCase,
): Promise<Outcome>[] {
  const places = inputs.flatMap(({ values }, i) =>
    [...new Set([0, values.length - 1])].flatMap((place) =>
      [nan, infinity].map((bad) => ({ i, place, bad })),
    ),
  );
  return places.map(async ({ i, place, bad }) => {
    const tensors = inputs.map(({ shape, values }, k) =>
      runtime.tensor(k === i ? values.with(place, bad) : values, shape, {
        dtype: "float32",
        requiresGrad: true,
      }),
    );
    const loss = apply(tensors, runtime).square().sum();
    const gradients = grad(loss, tensors);
    const arrays = await Promise.all(gradients.map((g) => g?.toArray()));
    return {
      title: `${op}, ${name}, input ${i} at ${place}`,
      bad,
      loss: await loss.item(),
      own: arrays[i]?.[place] ?? 0,
      isSeen: arrays.some((array) => array?.some((x) => !Number.isFinite(x))),
    };
  });
}

/** Cases that do not read the two elements, by masks, indices or labels, and x to the power 0, which is 1 for every x. */
const unread = [
  'crossEntropy, {"ignoreIndex":1} of [4,3], input 0',
  'crossEntropy, weighted {"labelSmoothing":0.2,"ignoreIndex":1} of [4,3], input 0',
  "fold, padded of [1,12,8], input 0",
  "indexPut, replace of [4,2], [2,2], input 0",
  "keepWhere, a mask of [2,3], input 0",
  "nllLoss, weighted {} of [4,3], input 0",
  'nllLoss, {"reduction":"none","ignoreIndex":1} of [2,2,3], input 0',
  "nllLoss, {} of [4,3], input 0",
  "pad, and cut of [3,4], input 0",
  "pow, to the power 0 of [2,3], input 0",
  "scatter, distinct places of [2,3], [2,2], input 0",
  "slice, every second of [5,2], input 0",
  "slice, from the end of [2,4], input 0",
  "topK, smallest of the middle axis, unsorted of [2,3,2], input 0",
  "where, two tensors of [2,3], [3], input 0",
];

test("what is not finite in an op reaches its result or is left out, and then reaches a gradient", async () => {
  const runtime = cpuRuntime();
  const all = await Promise.all(
    Object.entries(gradientCases).flatMap(([op, { cases }]) =>
      cases.flatMap((check) => outcomes(runtime, op, check)),
    ),
  );
  const ofNan = all.filter(({ bad }) => Number.isNaN(bad));
  const lost = ofNan.filter(({ loss, own }) => Number.isNaN(loss) && !Number.isNaN(own));
  const silent = all.filter(({ loss, isSeen }) => !Number.isFinite(loss) && !isSeen);
  expect(all.length).toBeGreaterThan(1000);
  expect([...lost, ...silent]).toEqual([]);
  const titleOf = ({ title }: Outcome): string => title.replace(/ at \d+$/, "");
  const read = new Set(ofNan.filter(({ loss }) => Number.isNaN(loss)).map(titleOf));
  const missed = new Set(ofNan.map(titleOf).filter((title) => !read.has(title)));
  expect([...missed].sort()).toEqual(unread.sort());
});
