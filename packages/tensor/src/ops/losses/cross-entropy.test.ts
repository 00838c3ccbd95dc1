import { DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../../test/forward-check.js";
import { cpuRuntime, grad, ShapeError, type Tensor } from "../../index.js";
import { type CrossEntropyOptions, crossEntropy } from "../index.js";

const labelsOf = (rows: number, classes: number): Uint32Array =>
  Uint32Array.from({ length: rows }, (_, row) => (3 * row + 1) % classes);

function lossesOf(x: readonly number[], rows: number, classes: number): number[] {
  return Array.from(labelsOf(rows, classes), (label, row) => {
    const logits = x.slice(row * classes, (row + 1) * classes);
    const largest = Math.max(...logits);
    const sum = logits.reduce((total, value) => total + Math.exp(value - largest), 0);
    return largest + Math.log(sum) - (logits[label] as number);
  });
}

const total = (x: readonly number[]): number => x.reduce((a, b) => a + b, 0);

const cases = (
  [
    [4, 10],
    [1, 3],
    [130, 2],
  ] as const
).flatMap(([rows, classes]): ForwardCase[] => {
  const { shape, values } = scattered([rows, classes]);
  const inputs = [{ shape, values: values.map((value) => value * 4) }];
  const lossFor =
    (reduction: "mean" | "sum" | "none"): ForwardCase["apply"] =>
    ([x], runtime) =>
      crossEntropy(x as Tensor, runtime.tensor(labelsOf(rows, classes)), { reduction });
  const losses = (x: readonly number[] | undefined): number[] =>
    lossesOf(x as number[], rows, classes);
  return [
    { name: "none", inputs, apply: lossFor("none"), expected: ([x]) => losses(x), shape: [rows] },
    {
      name: "sum",
      inputs,
      apply: lossFor("sum"),
      expected: ([x]) => [total(losses(x))],
      shape: [],
    },
    {
      name: "mean",
      inputs,
      apply: lossFor("mean"),
      expected: ([x]) => [total(losses(x)) / rows],
      shape: [],
    },
  ];
});

test.each(places)("cross-entropy is −log softmax at the label: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test.each(places)(
  "the mean and its gradients are those of the losses: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const { shape, values } = scattered([7, 5]);
    const labels = runtime.tensor(labelsOf(7, 5));
    const of = async (reduce: (x: Tensor) => Tensor): Promise<number[][]> => {
      const x = runtime.variable(Float32Array.from(values), shape, { dtype, requiresGrad: true });
      const factor = runtime.variable(Float32Array.of(3), [], { requiresGrad: true });
      const results = await runtime.step(() => {
        const loss = reduce(x);
        const [first] = grad(loss.mul(factor), [x], { createGraph: true }) as [Tensor];
        const second = grad(first.square().sum(), [x, factor]) as [Tensor, Tensor];
        return [loss, first, ...second];
      });
      return Promise.all(results.map(async (result) => Array.from(await result.toArray())));
    };
    const fused = await of((x) => crossEntropy(x, labels));
    const composed = await of((x) => crossEntropy(x, labels, { reduction: "none" }).mean());
    for (const [i, values] of fused.entries())
      for (const [j, value] of values.entries())
        expect(value).toBeCloseTo(composed[i]?.[j] as number, dtype === "float32" ? 6 : 2);
  },
);

test("weights, smoothing and an ignored label keep no log-probabilities and cost no launch over the logits", () => {
  const runtime = cpuRuntime();
  const weight = runtime.tensor(Float32Array.of(1, 2, 3));
  const kernelsOf = (options: CrossEntropyOptions): readonly string[] => {
    const logits = runtime.variable(new Float32Array(12), [4, 3], { requiresGrad: true });
    const labels = runtime.tensor(Uint32Array.of(0, 1, 2, 1));
    const { launches } = runtime.plan(() => {
      const loss = crossEntropy(logits, labels, options);
      loss.backward();
      return loss;
    });
    return launches
      .filter(({ launch }) => launch.bindings.some(({ length }) => length === 12))
      .map(({ launch }) => launch.kernel.name);
  };
  const found = (["mean", "sum"] as const).flatMap((reduction) =>
    [{}, { ignoreIndex: 2 }].flatMap((ignoring) =>
      [{}, { labelSmoothing: 0.1 }].flatMap((smoothing) =>
        [{}, { weight }].map((weighting) =>
          kernelsOf({ reduction, ...ignoring, ...smoothing, ...weighting }),
        ),
      ),
    ),
  );
  expect(found).toEqual(Array(16).fill(["softmaxCrossEntropy", "softmaxCrossEntropyBackward"]));
});

test("the loss of half logits is float32", () => {
  const runtime = cpuRuntime();
  const logits = runtime.zeros([2, 3], { dtype: "float16" });
  expect(crossEntropy(logits, runtime.tensor(Uint32Array.of(0, 2))).dtype).toBe("float32");
});

test("shapes and dtypes that do not fit are refused", () => {
  const runtime = cpuRuntime();
  const logits = runtime.zeros([2, 3]);
  const short = runtime.tensor(Uint32Array.of(1));
  expect(() => crossEntropy(logits, short)).toThrow(ShapeError);
  expect(() => crossEntropy(logits, short)).toThrow(
    "crossEntropy needs logits [..., classes] and labels [...], not [2,3] and [1]",
  );
  const floats = runtime.zeros([2]);
  expect(() => crossEntropy(logits, floats)).toThrow(DTypeError);
  expect(() => crossEntropy(logits, floats)).toThrow(
    "crossEntropy: labels are float32; make them from a Uint32Array, or from an Int32Array where some are negative",
  );
});
