import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { type BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, syncBatchNorm } from "../index.js";

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

const channels = 3;
const values = Array.from({ length: 12 * channels }, (_, i) => Math.sin(i) + (i % channels));

const numbersOf = async (x: Tensor | undefined): Promise<number[]> => [
  ...((await x?.toArray()) ?? []),
];

/** Output in training, gradients, running statistics, and output in evaluation mode. */
async function run(
  runtime: Runtime,
  norm: BatchNorm,
  sizes: readonly number[],
): Promise<number[][]> {
  const x = runtime.variable(values, [...sizes, channels], { requiresGrad: true });
  const trained = norm.forward(x);
  trained.square().mul(x).sum().backward();
  const known = [trained, x.grad, norm.weight?.grad, norm.bias?.grad];
  const found = [...known, norm.runningMean, norm.runningVar, norm.eval().forward(x)];
  expect(trained.shape).toEqual(x.shape);
  return Promise.all(found.map(numbersOf));
}

describe.each(runtimes)("batch norms, %s", (_, open) => {
  test("of vectors, sequences, images and volumes are one function of their rows", async () => {
    const runtime = await open();
    const expected = await run(runtime, new BatchNorm2d(runtime, channels), [2, 3, 2]);
    for (const [norm, sizes] of [
      [new BatchNorm1d(runtime, channels), [12]],
      [new BatchNorm1d(runtime, channels), [3, 4]],
      [new BatchNorm3d(runtime, channels), [1, 2, 3, 2]],
    ] as const)
      expect(await run(runtime, norm, sizes)).toEqual(expected);
  });

  test("without affine have no parameters, and compute what those of ones and zeros would", async () => {
    const runtime = await open();
    const norm = new BatchNorm1d(runtime, channels, { affine: false });
    expect([...norm.parameters()]).toEqual([]);
    expect(Object.keys(await norm.stateDict())).toEqual(["runningMean", "runningVar"]);
    const expected = await run(runtime, new BatchNorm1d(runtime, channels), [12]);
    expect(await run(runtime, norm, [12])).toEqual([
      ...expected.slice(0, 2),
      [],
      [],
      ...expected.slice(4),
    ]);
  });

  test("without affine normalise by the batch of several processes, too", async () => {
    const runtime = await open();
    const norm = new BatchNorm1d(runtime, channels, { affine: false });
    syncBatchNorm(norm, {
      isCounted: true,
      merge: async (_moments, rows) => rows,
      average: async () => {},
    });
    const x = runtime.variable(values, [12, channels], { requiresGrad: true });
    const output = await runtime.step(() => {
      const output = norm.forward(x);
      output.square().mul(x).sum().backward();
      return output;
    });
    const [trained, gradient] = await run(runtime, new BatchNorm1d(runtime, channels), [12]);
    for (const [found, expected] of [
      [await numbersOf(output), trained],
      [await numbersOf(x.grad), gradient],
    ])
      for (const [i, value] of (found as number[]).entries())
        expect(value).toBeCloseTo(expected?.[i] as number, 4);
  });
});

test("inputs of other shapes are refused, and the shapes named", () => {
  const runtime = cpuRuntime();
  const refused = (norm: BatchNorm, shape: readonly number[]) =>
    expect(() => norm.forward(runtime.zeros(shape)));
  refused(new BatchNorm1d(runtime, 3), [2, 4]).toThrow(
    "BatchNorm1d needs an input [batch, 3] or [batch, length, 3], not [2,4]",
  );
  refused(new BatchNorm1d(runtime, 3), [2, 2, 2, 3]).toThrow("or [batch, length, 3]");
  refused(new BatchNorm2d(runtime, 3), [2, 3]).toThrow(
    "BatchNorm2d needs an input [batch, height, width, 3], not [2,3]",
  );
  refused(new BatchNorm3d(runtime, 3), [2, 2, 2, 3]).toThrow("[batch, depth, height, width, 3]");
});
