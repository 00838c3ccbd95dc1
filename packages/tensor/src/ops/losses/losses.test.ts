import { autocast, DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import { ArgumentError, cpuRuntime, ShapeError } from "../../index.js";
import * as ops from "../index.js";

test("losses of half tensors are float32, outside of autocast too", async () => {
  const runtime = cpuRuntime();
  const [x, t] = [60000, -60000].map((value) => runtime.full([2], value, { dtype: "float16" }));
  if (!x || !t) return expect.unreachable();
  const losses = [
    ops.mseLoss(x, t),
    ops.l1Loss(x, t, { reduction: "sum" }),
    ops.huberLoss(x, t, { reduction: "none" }),
    ops.binaryCrossEntropyWithLogits(x, t),
  ];
  expect(losses.map(({ dtype }) => dtype)).toEqual(losses.map(() => "float32"));
  const [mse, l1] = await Promise.all(losses.slice(0, 2).map((loss) => loss.item()));
  const distance = 2 * ((await x.toArray()).at(0) ?? 0);
  expect([mse, l1]).toEqual([Math.fround(distance ** 2), 2 * distance]);
});

test("binaryCrossEntropy keeps the dtype of its operands, and is refused under autocast", () => {
  const runtime = cpuRuntime();
  for (const dtype of ["float16", "float32"] as const) {
    const p = runtime.full([2], 0.5, { dtype });
    expect(ops.binaryCrossEntropy(p, p).dtype).toBe(dtype);
    for (const region of ["float16", "bfloat16"] as const) {
      const call = () => autocast({ dtype: region }, () => ops.binaryCrossEntropy(p, p));
      expect(call).toThrow(DTypeError);
      expect(call).toThrow("Use binaryCrossEntropyWithLogits");
    }
  }
});

test("a certain and wrong probability costs 100, and its gradient is finite", async () => {
  const runtime = cpuRuntime();
  const p = runtime.tensor([0, 1, 0, 1], [4], { requiresGrad: true });
  const target = runtime.tensor([1, 0, 0, 1]);
  const losses = ops.binaryCrossEntropy(p, target, { reduction: "none" });
  expect([...(await losses.toArray())].map(Math.abs)).toEqual([100, 100, 0, 0]);
  losses.sum().backward();
  expect([...((await p.grad?.toArray()) ?? [])].map(Number.isFinite)).toEqual(Array(4).fill(true));
});

test("a mean over rows that are all ignored is NaN, as in torch", async () => {
  const runtime = cpuRuntime();
  const labels = runtime.tensor(Uint32Array.of(1, 1));
  const loss = ops.crossEntropy(runtime.zeros([2, 3]), labels, { ignoreIndex: 1 });
  expect(await loss.item()).toBeNaN();
});

test("what does not fit is refused", () => {
  const runtime = cpuRuntime();
  const [a, b] = [runtime.zeros([2, 3]), runtime.zeros([3])];
  const labels = runtime.tensor(Uint32Array.of(0, 1));
  const refused: readonly [() => unknown, typeof ShapeError | typeof RangeError, string][] = [
    [
      () => ops.mseLoss(a, b),
      ShapeError,
      "mseLoss: the input has shape [2,3], the target [3]; they must be equal, or a broadcast would count some elements twice",
    ],
    [
      () => ops.tripletMarginLoss(a, a, b),
      ShapeError,
      "the anchor has shape [2,3], the negative [3]",
    ],
    [() => ops.cosineEmbeddingLoss(a, a, b), ShapeError, "need a target of shape [2], not [3]"],
    [
      () => ops.crossEntropy(a, labels, { weight: runtime.zeros([2]) }),
      ShapeError,
      "crossEntropy: weight needs a number for each of the 3 classes, not the shape [2]",
    ],
    [() => ops.nllLoss(a, runtime.tensor(Uint32Array.of(0))), ShapeError, "nllLoss needs logits"],
    [() => ops.crossEntropy(a, labels, { labelSmoothing: 1.5 }), RangeError, "not from 0 to 1"],
    [() => ops.crossEntropy(a, a, { ignoreIndex: 1 }), RangeError, "ignoreIndex belongs to labels"],
    [() => ops.crossEntropy(a, a, { ignoreIndex: 1.5 }), ArgumentError, "must be an integer"],
    [() => ops.nllLoss(a, a, { ignoreIndex: Number.NaN }), ArgumentError, "must be an integer"],
    [() => ops.smoothL1Loss(a, a, { beta: -1 }), RangeError, "must be at least 0"],
    [() => ops.huberLoss(a, a, { delta: 0 }), RangeError, "must be above 0"],
    [() => ops.multiMarginLoss(a, labels, { p: 3 as 2 }), TypeError, "must be 1 or 2"],
    [() => ops.cdist(a, runtime.zeros([2, 4])), ShapeError, "cdist needs [..., n, size]"],
    [() => ops.cosineSimilarity(a, a, { axis: 2 }), ShapeError, "axis 2 is none of the dimensions"],
  ];
  for (const [call, type, message] of refused) {
    expect(call).toThrow(type);
    expect(call).toThrow(message);
  }
});
