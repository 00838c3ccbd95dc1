import { requestTestDevice } from "@halfstep/device/testing";
import { accumulationWindow, GradScaler, scaledValue } from "@halfstep/grad-scaler";
import type { Mlp } from "@halfstep/models";
import { AdamW, clipGradNorm, SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  flatten,
  gpuRuntime,
  grad,
  type Runtime,
  type Storage,
  type Tensor,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import { parameterSha256 } from "../src/index.js";
import { classifier, lossOf, samples } from "./classes.js";

type Scaler = GradScaler<Storage, Tensor>;

/** A way to train in float32, which a scale that is a power of two must not change by a bit. */
interface Scenario {
  readonly name: string;
  /** Trains a few steps, and returns what was trained. */
  run(runtime: Runtime, scaler: Scaler): Promise<readonly Mlp[]>;
}

const adamw = (runtime: Runtime, model: Mlp) =>
  new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.02 });

const steps = 6;

const scenarios: readonly Scenario[] = [
  {
    name: "clipping",
    async run(runtime, scaler) {
      const model = classifier(runtime);
      const optimizer = adamw(runtime, model);
      for (let step = 0; step < steps; step++)
        await runtime.step(() => {
          scaler.scale(lossOf(model, samples(16, step))).backward();
          scaler.unscale(optimizer);
          clipGradNorm(optimizer, 0.05);
          scaler.step(optimizer);
          scaler.update();
          optimizer.zeroGrad();
        });
      return [model];
    },
  },
  {
    name: "accumulation",
    async run(runtime, scaler) {
      const model = classifier(runtime);
      const optimizer = adamw(runtime, model);
      const window = accumulationWindow(scaler, optimizer, { samples: 60 });
      for (let step = 0; step < steps; step++)
        await runtime.step(() => {
          for (const [i, size] of [16, 12, 32].entries())
            window.scale(lossOf(model, samples(size, 10 * step + i)), size).backward();
          window.step({ clip: (each) => clipGradNorm(each, 0.05) });
        });
      return [model];
    },
  },
  {
    name: "two optimizers and two losses",
    async run(runtime, scaler) {
      const models = [classifier(runtime, 1), classifier(runtime, 2)] as const;
      const optimizers = [
        adamw(runtime, models[0]),
        new SGD(runtime.target, flatten(models[1].parameters()), { lr: 0.1, momentum: 0.9 }),
      ] as const;
      for (let step = 0; step < steps; step++)
        await runtime.step(() => {
          const [a, b] = models.map((model) => lossOf(model, samples(16, step))) as [
            Tensor,
            Tensor,
          ];
          scaler.scale(a.mul(2).add(b.mul(3))).backward({ retainGraph: true });
          scaler.scale(a.mul(3).sub(b.mul(5))).backward();
          scaler.unscale(optimizers[0]);
          clipGradNorm(optimizers[0], 0.1);
          scaler.step(optimizers[0]);
          scaler.step(optimizers[1]);
          scaler.update();
          for (const optimizer of optimizers) optimizer.zeroGrad();
        });
      return models;
    },
  },
  {
    name: "gradient penalty",
    async run(runtime, scaler) {
      const model = classifier(runtime);
      const optimizer = adamw(runtime, model);
      const parameters = [...model.parameters()];
      for (let step = 0; step < steps; step++) {
        const scale = await scaler.getScale();
        await runtime.step(() => {
          const loss = lossOf(model, samples(16, step));
          const gradients = grad(scaledValue(scaler.scale(loss)), parameters, {
            createGraph: true,
          });
          const penalty = gradients
            .map((gradient) =>
              (gradient as Tensor)
                .mul(1 / scale)
                .square()
                .sum(),
            )
            .reduce((sum, term) => sum.add(term));
          scaler.scale(loss.add(penalty.mul(0.1))).backward();
          scaler.step(optimizer);
          scaler.update();
          optimizer.zeroGrad();
        });
      }
      return [model];
    },
  },
];

const runtimes = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
] as const;

const bits = async (models: readonly Mlp[]): Promise<readonly string[]> =>
  Promise.all(models.map((model) => parameterSha256(model.namedParameters())));

test.each(runtimes)(
  "a scale that is a power of two changes no bit of float32 training: %s",
  async (_, make) => {
    const differing: string[] = [];
    for (const { name, run } of scenarios) {
      const runtime = await make();
      const trained = async (options: ConstructorParameters<typeof GradScaler>[1]) =>
        bits(await run(runtime, new GradScaler(ampPrimitives(runtime), options)));
      const plain = await trained({ enabled: false });
      const untrained = await bits([classifier(runtime, 1), classifier(runtime, 2)]);
      if (plain.some((hash) => untrained.includes(hash)))
        differing.push(`${name}: nothing was trained`);
      for (const options of [
        { preset: "static", initScale: 2 ** 13 },
        { initScale: 2 ** 20, growthInterval: 2 },
      ] as const)
        if ((await trained(options)).join() !== plain.join())
          differing.push(`${name}, ${JSON.stringify(options)}`);
    }
    expect(differing).toEqual([]);
  },
);
