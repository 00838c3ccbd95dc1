import { philox4x32 } from "@halfstep/formats/philox";
import { AdamW } from "@halfstep/optim";
import {
  cpuRuntime,
  crossEntropy,
  flatten,
  linear,
  type Runtime,
  relu,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import type { Carrier } from "../src/carrier.js";
import { DiLoCo } from "../src/diloco/diloco.js";
import { GradientExchange } from "../src/gradients/gradient-exchange.js";
import { inProcess } from "../src/in-process/in-process.js";

// What exchanges of fewer numbers cost in loss: two ranks learn classes of noisy points, new ones in each step.

/** Normal numbers, and uniform ones from 0 up to 1. */
function randomOf(seed: number) {
  let drawn = 0;
  const uniform = (): number =>
    ((philox4x32([drawn++, 0, 0, 0], [seed, 0])[0] as number) + 0.5) / 2 ** 32;
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

interface Task {
  readonly sizes: readonly number[];
  /** The distance of centers, in deviations of the noise. */
  readonly spread: number;
  readonly seed: number;
}

/** A perceptron and its samples. A tenth of the labels are random, so that no loss comes near 0. */
function opened(runtime: Runtime, { sizes, spread, seed }: Task) {
  const [features, classes] = [sizes[0] as number, sizes.at(-1) as number];
  const random = randomOf(seed * 1000 + 1);
  const centers = Array.from({ length: classes * 2 }, () =>
    Float32Array.from({ length: features }, () => random.normal() * spread),
  );
  const layers = sizes.slice(1).map((out, i) => {
    const fan = sizes[i] as number;
    const weight = Float32Array.from(
      { length: out * fan },
      () => random.normal() * Math.sqrt(2 / fan),
    );
    const made = { requiresGrad: true };
    return [
      runtime.variable(weight, [out, fan], { ...made, name: `weight ${i}` }),
      runtime.variable(new Float32Array(out), [out], { ...made, name: `bias ${i}` }),
    ] as readonly [Variable, Variable];
  });
  const lossOf = (count: number, sampleSeed: number): Tensor => {
    const own = randomOf(sampleSeed);
    const labels = new Uint32Array(count);
    const points = new Float32Array(count * features);
    for (let i = 0; i < count; i++) {
      const place = Math.floor(own.uniform() * centers.length);
      const isRandom = own.uniform() < 0.1;
      labels[i] = isRandom ? Math.floor(own.uniform() * classes) : place % classes;
      const center = centers[place] as Float32Array;
      for (let j = 0; j < features; j++)
        points[i * features + j] = (center[j] as number) + own.normal();
    }
    const [last, ...others] = [...layers].reverse() as (readonly [Variable, Variable])[];
    let x = runtime.tensor(points, [count, features]);
    for (const [weight, bias] of others.reverse()) x = relu(linear(x, weight, bias));
    const [weight, bias] = last as readonly [Variable, Variable];
    return crossEntropy(linear(x, weight, bias), runtime.tensor(labels));
  };
  return { parameters: layers.flat(), lossOf };
}

const carriers = (): readonly Carrier[] => inProcess(2, { hosts: ["a", "b"] });

describe("DiLoCo with 20 inner steps", () => {
  const [steps, perRank] = [160, 8];
  const train = async (seed: number, isDiloco: boolean) => {
    const ranks = carriers();
    const losses = await Promise.all(
      ranks.map(async (carrier) => {
        const runtime = cpuRuntime();
        const task = { sizes: [24, 32, 32, 6], spread: 0.8, seed };
        const { parameters, lossOf } = opened(runtime, task);
        const optimizer = new AdamW(runtime.target, flatten(parameters), { lr: 3e-3 });
        const exchange = new GradientExchange(carrier, { wire: "float16" });
        const diloco = new DiLoCo(carrier, parameters, { innerSteps: 20, lastStep: steps });
        if (isDiloco) await diloco.begin();
        const before = carrier.traffic.bytes;
        for (let step = 1; step <= steps; step++) {
          await runtime.step(() => {
            lossOf(perRank, seed * 1e5 + step * 2 + carrier.rank).backward();
            if (!isDiloco) exchange.reduce(optimizer);
            optimizer.step();
            optimizer.zeroGrad();
          });
          if (isDiloco) await diloco.afterStep({ step });
        }
        await runtime.flush();
        const bytes = carrier.traffic.bytes - before;
        const loss = await runtime.step(() => lossOf(1500, 77));
        return { bytes, loss: await loss.item() };
      }),
    );
    return losses[0] as (typeof losses)[number];
  };

  it.each([1, 2, 3])(
    "seed %d: the loss of an exchange in every step, for 1/18 of the bytes",
    async (seed) => {
      const [every, few] = [await train(seed, false), await train(seed, true)];
      console.log(
        `note: DiLoCo, seed ${seed}: loss ${few.loss.toFixed(4)}, ${every.loss.toFixed(4)} with an exchange in every step`,
      );
      expect(few.loss).toBeLessThan(1.02 * every.loss);
      expect(few.bytes).toBeLessThan(every.bytes / 18);
    },
  );
});
