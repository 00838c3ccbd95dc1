import { readFileSync } from "node:fs";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { ctcLoss } from "../../functional.js";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "../../index.js";

/** Values by torch: see test/golden/ctc.py. */
const golden = JSON.parse(
  readFileSync(new URL("../../../test/golden/ctc.json", import.meta.url), "utf8"),
) as {
  readonly logits: readonly number[];
  readonly none: readonly number[];
  readonly sum: number;
  readonly mean: number;
  readonly gradient: readonly number[];
  readonly "blank 4": number;
};

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

test.each(runtimes)("losses and gradients are torch's: %s", async (_, open) => {
  const runtime = await open();
  const integers = (...values: number[]): Tensor => runtime.tensor(Uint32Array.from(values));
  const logits = runtime.variable(golden.logits, [6, 4, 5], { requiresGrad: true });
  const targets = integers(1, 2, 2, 4, 3, 0, 3, 3, 3, 0, 0, 0).reshape([4, 3]);
  const [inputs, lengths] = [integers(6, 4, 3, 5), integers(3, 2, 3, 0)];
  const logProbs = logits.logSoftmax(2);
  const loss = (reduction: "none" | "sum" | "mean", zeroInfinity = true): Tensor =>
    ctcLoss(logProbs, targets, inputs, lengths, { reduction, zeroInfinity });
  const losses = await loss("none").toArray();
  for (const [i, value] of golden.none.entries()) expect(losses[i]).toBeCloseTo(value, 4);
  expect(await loss("sum").item()).toBeCloseTo(golden.sum, 4);
  expect((await loss("none", false).toArray())[2]).toBe(Number.POSITIVE_INFINITY);
  const blank = { blank: 4 };
  const others = integers(1, 0, 2, 1, 3, 2, 0, 3).reshape([4, 2]);
  const last = ctcLoss(logProbs, others, inputs, integers(2, 2, 1, 2), blank);
  expect(await last.item()).toBeCloseTo(golden["blank 4"], 4);
  const mean = loss("mean");
  mean.backward({ retainGraph: true });
  expect(await mean.item()).toBeCloseTo(golden.mean, 5);
  const gradient = await (logits.grad as Tensor).toArray();
  for (const [i, value] of golden.gradient.entries()) expect(gradient[i]).toBeCloseTo(value, 5);
  logits.zeroGrad();
  loss("mean", false).backward();
  const infinite = await (logits.grad as Tensor).toArray();
  expect(infinite.some((value) => !Number.isFinite(value))).toBe(true);
  expect(() => ctcLoss(logProbs, targets, inputs, integers(1))).toThrow(
    "ctcLoss: log-probabilities",
  );
});

test.each(runtimes)(
  "lengths and labels out of range give NaN, and leave other samples alone: %s",
  async (_, open) => {
    const runtime = await open();
    const integers = (...values: number[]): Tensor => runtime.tensor(Int32Array.from(values));
    const targets = integers(1, 2, 1, 2, 1, 9, 1, -1, 1, -1).reshape([5, 2]);
    const logits = runtime.variable(golden.logits.slice(0, 4 * 5 * 5), [4, 5, 5], {
      requiresGrad: true,
    });
    const losses = ctcLoss(
      logits.logSoftmax(2),
      targets,
      integers(4, 9, 4, 4, 4),
      integers(2, 2, 2, 2, 1),
      {
        reduction: "none",
        zeroInfinity: true,
      },
    );
    losses.sum().backward();
    const isNumber = (values: ArrayLike<number>): boolean[] =>
      Array.from(values, (value) => !Number.isNaN(value));
    expect(isNumber(await losses.toArray())).toEqual([true, false, false, false, true]);
    const last = (logits.grad as Tensor).narrow(0, 3, 1).select(2, 0);
    expect(isNumber(await last.toArray())).toEqual([true, false, false, false, true]);
  },
);
