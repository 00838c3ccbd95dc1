import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import {
  batchNorm,
  conv2d,
  cpuRuntime,
  embedding,
  gpuRuntime,
  layerNorm,
  linear,
  type Runtime,
  type RuntimeOptions,
  type Tensor,
  type Variable,
} from "../src/index.js";
import { allPasses, type PassName } from "../src/internals.js";

// Gradients of several backward passes, in one recording and in several: the launch that produces a gradient adds it to the existing
// one.

type Storage = "float32" | "float16" | "bfloat16";

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/**
 * Gradients of two recordings of micro-batches, as bytes, and the launches of the second. The model has a table that is tied to the
 * last product, a convolution, a product in parts, norms whose gradients other launches also read, and an elementwise factor.
 */
async function gradients(runtime: Runtime, dtype: Storage) {
  const parameter = (shape: readonly number[], seed: number): Variable => {
    const length = shape.reduce((a, b) => a * b, 1);
    return runtime.variable(numbers(length, seed), shape, {
      ...{ requiresGrad: true, dtype, name: `parameter ${seed}` },
    });
  };
  const [table, kernel, weight] = [
    parameter([9, 8], 1),
    parameter([3, 3, 8, 8], 2),
    parameter([8, 8], 3),
  ];
  const [bias, factor] = [parameter([8], 4), parameter([8], 5)];
  const norms = [6, 7, 8, 9].map((seed) => parameter([8], seed)) as [
    Variable,
    Variable,
    Variable,
    Variable,
  ];
  const parameters = [table, kernel, weight, bias, factor, ...norms];
  const loss = (seed: number): Tensor => {
    const ids = runtime.tensor(
      Uint32Array.from({ length: 1152 }, (_, i) => (i * 5 + seed) % 9),
      [1152],
    );
    const rows = embedding(ids, table).reshape([2, 24, 24, 8]);
    const { output } = batchNorm(
      conv2d(rows, kernel, undefined, { padding: 1 }),
      norms[0],
      norms[1],
    );
    const hidden = linear(output.reshape([1152, 8]).tanh(), weight, bias).mul(factor);
    const normed = layerNorm(hidden, [8], norms[2], norms[3]);
    return linear(normed, table)
      .tanh()
      .mul(1 + seed / 8)
      .sum();
  };
  for (const recording of [0, 1])
    await runtime.step(() => {
      for (const batch of [0, 1]) loss(2 * recording + batch).backward();
    });
  const bytes: string[] = [];
  for (const { grad } of parameters) {
    const values = (await grad?.toArray()) as Float32Array;
    bytes.push(Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("hex"));
  }
  const names = runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name) ?? [];
  return { bytes, alone: names.filter((name) => name === "accumulate").length };
}

type Options = Pick<RuntimeOptions, "passes">;
const runners: readonly (readonly [string, (options: Options) => Promise<Runtime>])[] = [
  ["CPU", async (options) => cpuRuntime(options)],
  ...(await testTiers()).map((tier): (typeof runners)[number] => [
    `GPU, ${tier}`,
    async (options) => gpuRuntime(await requestTestDevice({ tier }), options),
  ]),
];
const unfolded: readonly PassName[] = allPasses.filter((name) => name !== "foldAccumulations");

// Compiling takes most of the time: on GPUs each storage is tested on one tier, and float32 in lanes alone.
const dtypesOf = (name: string): readonly Storage[] => {
  if (name === "CPU") return ["float32", "float16", "bfloat16"];
  if (name === "GPU, packed") return ["bfloat16"];
  return process.env.HALFSTEP_LANE_TESTS ? ["float32", "float16"] : ["float16"];
};

test.each(
  runners.flatMap(([name, open]) => dtypesOf(name).map((dtype) => ({ name, open, dtype }))),
)("gradients add up to the same bits: $name, $dtype", async ({ name, open, dtype }) => {
  const folded = await gradients(await open({}), dtype);
  const apart = await gradients(await open({ passes: unfolded }), dtype);
  expect([folded.alone, apart.alone]).toEqual([0, 18]);
  expect(folded.bytes.map((bytes, i) => bytes === apart.bytes[i])).not.toContain(false);
  if (name !== "CPU") return;
  const plain = await gradients(await open({ passes: [] }), dtype);
  const alone = await gradients(await open({ passes: ["foldAccumulations"] }), dtype);
  expect([folded.bytes, alone.bytes]).toEqual([plain.bytes, plain.bytes]);
});
