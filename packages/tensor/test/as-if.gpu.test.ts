import { autocast } from "@halfstep/autocast";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import {
  batchNorm,
  conv2d,
  cpuRuntime,
  crossEntropy,
  gpuRuntime,
  linear,
  maxPool2d,
  type Plan,
  type Runtime,
  relu,
  type Tensor,
  type Variable,
} from "../src/index.js";
import { allPasses, type PassName } from "../src/internals.js";

type Precision = "float32" | "float16" | "bfloat16";

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/** Two steps of a small CNN in which every kind of pass applies. */
async function train(
  runtime: Runtime,
  precision: Precision,
): Promise<{ bytes: string; plan: Plan }> {
  const parameter = (shape: readonly number[], seed: number): Variable =>
    runtime.variable(
      numbers(
        shape.reduce((a, b) => a * b, 1),
        seed,
      ),
      shape,
      {
        requiresGrad: true,
        name: `parameter ${seed}`,
      },
    );
  const kernel = parameter([3, 3, 1, 8], 1);
  const gain = parameter([8], 2);
  const shift = parameter([8], 3);
  const weight = parameter([10, 128], 4);
  const bias = parameter([10], 5);
  const parameters = [kernel, gain, shift, weight, bias];
  const model = (x: Tensor): Tensor => {
    const { output } = batchNorm(conv2d(x, kernel, undefined, { padding: 1 }), gain, shift);
    const pooled = maxPool2d(relu(output), { window: 2 });
    const hidden = pooled.reshape([4, 128]).mul(0.5).tanh();
    return linear(hidden, weight, bias);
  };
  const results: Tensor[] = [];
  for (let step = 0; step < 2; step++)
    results.push(
      ...(await runtime.step(() => {
        const x = runtime.tensor(numbers(4 * 64, 10 + step), [4, 8, 8, 1]);
        const labels = runtime.tensor(Uint32Array.of(1, 7, 3, 0), [4]);
        const loss =
          precision === "float32"
            ? crossEntropy(model(x), labels)
            : autocast({ dtype: precision }, () => crossEntropy(model(x), labels));
        loss.mul(1024).backward();
        for (const p of parameters) if (p.grad) p.assign(p.sub(p.grad.mul(0.1 / 1024)));
        for (const p of parameters) p.zeroGrad();
        return [loss];
      })),
    );
  const arrays: Uint8Array[] = [];
  for (const tensor of [...results, ...parameters]) {
    const values = await tensor.toArray();
    arrays.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  return { bytes: Buffer.concat(arrays).toString("hex"), plan: runtime.lastPlan as Plan };
}

const subsets: readonly (readonly PassName[])[] = [
  allPasses,
  ["removeDeadLaunches"],
  ["foldCasts"],
  ["fuseElementwise"],
  ["foldCasts", "narrowStorage"],
  ["rematerializeSums"],
  ["fuseEpilogues"],
  ["reuseMemory"],
];

const runners: readonly [string, (passes: readonly PassName[]) => Promise<Runtime>][] = [
  ["CPU", async (passes) => cpuRuntime({ passes })],
  ...(await testTiers()).map((tier): (typeof runners)[number] => [
    `GPU, ${tier}`,
    async (passes) => gpuRuntime(await requestTestDevice({ tier }), { passes }),
  ]),
];
// On a GPU each precision compiles kernels of its own, which takes seconds: lanes have all of them.
const everywhere = ["float32", "float16", "bfloat16"] as const;
const precisionsOf = (name: string): readonly (typeof everywhere)[number][] =>
  name === "CPU" || process.env.HALFSTEP_LANE_TESTS ? everywhere : ["float16"];
const cases = runners.flatMap(([name, open]) =>
  precisionsOf(name).map((precision) => ({ name, open, precision })),
);

// On a GPU every subset compiles kernels of its own, which takes seconds; each pass alone is tried on the CPU.
test.each(cases)("passes change no bit: $name, $precision", async ({ name, open, precision }) => {
  const plain = await train(await open([]), precision);
  for (const passes of name === "CPU" ? subsets : [allPasses]) {
    const { bytes } = await train(await open(passes), precision);
    expect(bytes === plain.bytes, `passes ${passes.join(", ")} changed a result`).toBe(true);
  }
});

test("planning leaves no cast and fewer launches, in less memory", async () => {
  const plain = await train(cpuRuntime({ passes: [] }), "float16");
  const planned = await train(cpuRuntime(), "float16");
  expect(plain.plan.statistics.casts).toBeGreaterThan(5);
  expect(planned.plan.statistics.casts).toBe(0);
  expect(planned.plan.statistics.launches).toBeLessThan(plain.plan.statistics.launches);
  expect(planned.plan.statistics.peakBytes).toBeLessThan(plain.plan.statistics.peakBytes / 1.5);
});
