import { Linear, Sequential, Tanh } from "@halfstep/nn";
import { Adam } from "@halfstep/optim";
import {
  cpuRuntime,
  flatten,
  Generator,
  grad,
  noGrad,
  rand,
  randn,
  type Tensor,
} from "@halfstep/tensor";
import { lerp } from "@halfstep/tensor/functional";
import { expect, test } from "vitest";

// A Wasserstein GAN with gradient penalty (Gulrajani et al. 2017, algorithm 1) of pairs of numbers around (2, −1).
const batch = 32;

test("a generator finds a distribution by a critic whose gradient is penalized", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(11);
  const critic = new Sequential(
    new Linear(runtime, 2, 16, { generator }),
    new Tanh(),
    new Linear(runtime, 16, 1, { generator }),
  );
  const maker = new Linear(runtime, 2, 2, { generator });
  const options = { lr: 0.02, betas: [0.5, 0.9] } as const;
  const adamOf = (model: Linear | Sequential) =>
    new Adam(runtime.target, flatten([...model.parameters()]), options);
  const [ofCritic, ofMaker] = [adamOf(critic), adamOf(maker)];
  const made = (): Tensor => maker.forward(randn(runtime, [batch, 2], { generator }));
  const centre = runtime.variable([2, -1], [2]);
  const real = (): Tensor => randn(runtime, [batch, 2], { deviation: 0.3, generator }).add(centre);

  const criticLoss = (): Tensor => {
    const [truth, fake] = [real(), noGrad(made)];
    const between = lerp(truth, fake, rand(runtime, [batch, 1], { generator })).detach();
    between.requiresGrad = true;
    const [slope] = grad(critic.forward(between).sum(), [between], { createGraph: true });
    const penalty = (slope as Tensor).norm({ axes: 1 }).sub(1).square().mean();
    return critic.forward(fake).mean().sub(critic.forward(truth).mean()).add(penalty.mul(10));
  };

  for (let step = 0; step < 120; step++) {
    for (let k = 0; k < 3; k++)
      await runtime.step(() => {
        criticLoss().backward();
        ofCritic.step();
        ofCritic.zeroGrad();
      });
    await runtime.step(() => {
      critic.forward(made()).mean().neg().backward();
      ofMaker.step();
      for (const optimizer of [ofMaker, ofCritic]) optimizer.zeroGrad();
    });
  }
  const samples = await runtime.step(() => noGrad(() => made().mean(0)));
  const [x, y] = await samples.toArray();
  expect(Math.hypot((x as number) - 2, (y as number) + 1)).toBeLessThan(0.5);
});
