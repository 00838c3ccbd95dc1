import { autocast } from "@halfstep/autocast";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import {
  checkpoint,
  cpuRuntime,
  dropout,
  Generator,
  gpuRuntime,
  layerNorm,
  linear,
  type Runtime,
  type Tensor,
} from "../src/index.js";
import type { PassName } from "../src/internals.js";

type Precision = "float32" | "float16" | "bfloat16";

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/** Two steps, of one plan and other numbers, of a block whose product is `width` wide: its losses and gradients as bytes. */
async function train(runtime: Runtime, precision: Precision, width: number) {
  const variable = (shape: readonly [number, ...number[]], seed: number) =>
    runtime.variable(numbers(shape[0] * (shape[1] ?? 1), seed), shape, { requiresGrad: true });
  const [first, second] = [variable([width, width], 1), variable([width, width], 2)];
  const [bias, gain] = [variable([width], 3), variable([width], 4)];
  const generator = new Generator(2 ** 33 + 1);
  const block = (x: Tensor): Tensor => {
    const branch = dropout(linear(x, first, bias), { p: 0.3, generator });
    const normal = layerNorm(x.add(branch), [width], gain, bias);
    const next = dropout(linear(normal, second, bias), { p: 0.6, generator });
    return dropout(normal.add(next), { p: 0.1, generator });
  };
  const arrays: Uint8Array[] = [];
  for (let step = 0; step < 2; step++) {
    const results = await runtime.step(() => {
      const x = runtime.tensor(numbers(13 * width, 10 + step), [13, width]);
      const forward = () => checkpoint(block, block(x)).square().mean();
      const loss = precision === "float32" ? forward() : autocast({ dtype: precision }, forward);
      loss.backward();
      const gradients = [first, second, bias, gain].map(({ grad }) => grad?.mul(1) as Tensor);
      for (const p of [first, second, bias, gain]) p.zeroGrad();
      return [loss, ...gradients];
    });
    for (const result of results) {
      const { buffer, byteOffset, byteLength } = await result.toArray();
      arrays.push(new Uint8Array(buffer, byteOffset, byteLength));
    }
  }
  const launches = runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name) ?? [];
  return { bytes: Buffer.concat(arrays).toString("hex"), launches };
}

const runners: readonly [string, (passes?: readonly PassName[]) => Promise<Runtime>][] = [
  ["CPU", async (passes) => cpuRuntime(passes && { passes })],
  ...(await testTiers()).map((tier): (typeof runners)[number] => [
    `GPU, ${tier}`,
    async (passes) => gpuRuntime(await requestTestDevice({ tier }), passes && { passes }),
  ]),
];
// Whole quads; pairs, which draw no numbers; rows that begin inside a quad. On a GPU each case compiles kernels, which takes seconds.
const everywhere = [
  ["float32", 20],
  ["float16", 20],
  ["bfloat16", 20],
  ["float16", 10],
  ["bfloat16", 7],
] as const;
const cases = runners.flatMap(([name, open]) =>
  everywhere
    .filter((_, i) => name === "CPU" || i === (name === "GPU, native" ? 1 : 4))
    .map(([precision, width]) => ({ name, open, precision, width })),
);

test.each(cases)(
  "dropout draws the same numbers inside other launches: $name, $precision, $width wide",
  async ({ name, open, precision, width }) => {
    const [fused, plain] = [
      await train(await open(), precision, width),
      await train(await open([]), precision, width),
    ];
    expect(fused.bytes === plain.bytes, name).toBe(true);
    expect(fused.bytes).not.toMatch(/^(00)*$/);
    const alone = fused.launches.filter((launch) => launch === "dropout").length;
    expect(alone).toBeLessThan(plain.launches.filter((launch) => launch === "dropout").length);
    const woven = fused.launches.filter((launch) => /^(matmul|sumParts)\+.*dropout/.test(launch));
    expect(woven.length > 0).toBe(width !== 10);
  },
);
