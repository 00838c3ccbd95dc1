import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, HostOpError, type Runtime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { BatchNorm2d } from "./batch-norm.js";
import { type BatchStatisticsExchange, syncBatchNorm } from "./sync-batch-norm.js";

const channels = 3;
const rows = 8;

/** Of one process. */
const alone: BatchStatisticsExchange = {
  isCounted: true,
  merge: async (_, rows) => rows,
  average: async () => {},
};

const values = Float32Array.from({ length: rows * channels }, (_, i) => Math.sin(i * 12.9898) * 3);
const slopes = Float32Array.from({ length: rows * channels }, (_, i) => Math.cos(i * 4.1));

/** Output, gradients and running statistics of a batch norm. */
async function run(runtime: Runtime, exchange?: BatchStatisticsExchange): Promise<number[][]> {
  const norm = new BatchNorm2d(runtime, channels, { momentum: 0.5 });
  if (exchange) syncBatchNorm(norm, exchange);
  const x = runtime.variable(values, [2, 2, 2, channels], { requiresGrad: true });
  const output = await runtime.step(() => {
    const output = norm.forward(x);
    output.mul(runtime.tensor(slopes, output.shape)).sum().backward();
    return output;
  });
  const found = [
    output,
    x.grad,
    norm.weight?.grad,
    norm.bias?.grad,
    norm.runningMean,
    norm.runningVar,
  ];
  return Promise.all(found.map(async (each) => [...((await each?.toArray()) ?? [])]));
}

test("alone, it is a batch norm, on the CPU and on a GPU", async () => {
  const expected = await run(cpuRuntime());
  for (const runtime of [cpuRuntime(), gpuRuntime(await requestTestDevice())])
    for (const [i, found] of (await run(runtime, alone)).entries())
      for (const [j, value] of found.entries())
        expect(Math.abs(value - (expected[i]?.[j] as number))).toBeLessThan(1e-5);
});

test("normalises by the statistics that the exchange returns", async () => {
  const runtime = cpuRuntime();
  const norm = new BatchNorm2d(runtime, channels, { momentum: 1 });
  const rowsOf: number[] = [];
  syncBatchNorm(norm, {
    isCounted: false,
    async merge({ mean, variance }, rows) {
      rowsOf.push(rows);
      mean.fill(2);
      variance.fill(4 - norm.eps);
      return 5;
    },
    average: async () => {},
  });
  const output = norm.forward(runtime.tensor([4, 2, 0], [1, 1, 1, channels]));
  expect([...(await output.toArray())].map(Math.round)).toEqual([1, 0, -1]);
  expect([...(await norm.runningMean.toArray())]).toEqual([2, 2, 2]);
  expect((await norm.runningVar.toArray())[0]).toBeCloseTo(5, 3);
  // Rows that do not count are none.
  expect(rowsOf).toEqual([0]);
});

test("a batch of one row in all processes is refused, and names the module", async () => {
  const runtime = cpuRuntime();
  const norm = new BatchNorm2d(runtime, channels);
  syncBatchNorm(norm, alone);
  const x = runtime.tensor([1, 2, 3], [1, 1, 1, channels]);
  const failed = await runtime.step(() => norm.forward(x)).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(HostOpError);
  expect(String((failed as Error).cause)).toContain("BatchNorm2d got one value a channel");
});

test("what is no module or no exchange is refused", () => {
  const norm = new BatchNorm2d(cpuRuntime(), channels);
  for (const [model, exchange] of [
    [norm, undefined],
    [norm, { rank: 0 }],
    [undefined, alone],
  ])
    expect(() => syncBatchNorm(model as never, exchange as never)).toThrow(
      "syncBatchNorm(model, exchange): pass a module and new StatisticsExchange(carrier)",
    );
});
