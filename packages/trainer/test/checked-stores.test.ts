import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { GPT, Mlp } from "@halfstep/models";
import { BatchNorm2d, Conv2d, Generator, Linear, Module } from "@halfstep/nn";
import { Adam } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  flatten,
  gpuRuntime,
  maxPool2d,
  type Runtime,
  relu,
  type Tensor,
} from "@halfstep/tensor";
import { allPasses, type PassName } from "@halfstep/tensor/internals";
import { describe, expect, test } from "vitest";
import { parameterSha256 } from "../src/index.js";

// Loss scaling has no launch of its own: kernels that store gradients and the loss check them, and the one that prepares the
// optimizer's step updates the scale. Nothing else changes.

/** A block of the networks of images, and their head: each layer more is a second of the driver's compiler. */
class SmallCnn extends Module {
  readonly conv: Conv2d;
  readonly norm: BatchNorm2d;
  readonly head: Linear;

  constructor(runtime: Runtime) {
    super();
    const generator = new Generator(0);
    this.conv = new Conv2d(runtime, 1, 16, { kernelSize: 3, padding: 1, bias: false, generator });
    this.norm = new BatchNorm2d(runtime, 16);
    this.head = new Linear(runtime, 256, 10, { generator });
  }

  forward(x: Tensor): Tensor {
    const features = maxPool2d(relu(this.norm.forward(this.conv.forward(x))), { window: 2 });
    return this.head.forward(features.reshape([-1, 256]));
  }
}

interface Trained {
  readonly model: Module & { forward(x: Tensor): Tensor };
  readonly input: Tensor;
}

const waves = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(i * 1.7));

const models: Readonly<Record<string, (runtime: Runtime) => Trained>> = {
  "an MLP": (runtime) => ({
    model: new Mlp(runtime, { seed: 0, sizes: [20, 33, 10] }),
    input: runtime.tensor(waves(6 * 20), [6, 20]),
  }),
  "a CNN": (runtime) => ({
    model: new SmallCnn(runtime),
    input: runtime.tensor(waves(4 * 64), [4, 8, 8, 1]),
  }),
  "a GPT": (runtime) => ({
    model: new GPT(runtime, {
      ...{ seed: 0, vocabSize: 10, blockSize: 8 },
      ...{ nLayer: 1, nHead: 2, nEmbd: 16, dropout: 0.1 },
    }),
    input: runtime.tensor(
      Uint32Array.from({ length: 16 }, (_, i) => (i * 3) % 10),
      [2, 8],
    ),
  }),
};

const steps = 7;

/**
 * Trains from a scale that overflows, with a micro-batch before each step where gradients accumulate. Returns what was trained, what
 * became of the steps, and the launches that do nothing but to scale losses.
 */
async function train(
  make: (runtime: Runtime) => Trained,
  { passes, accumulates }: { passes: readonly PassName[]; accumulates: boolean },
) {
  const runtime = gpuRuntime(await requestTestDevice(), { passes });
  const { model, input } = make(runtime);
  const optimizer = new Adam(runtime.target, flatten(model.parameters()), { lr: 0.01 });
  const scaler = new GradScaler(ampPrimitives(runtime), {
    initScale: 2 ** 24,
    backoffFactor: 2 ** -5,
    growthInterval: 2,
  });
  const backward = (): Tensor => {
    const loss = autocast({ dtype: "float16" }, () => {
      const scores = model.forward(input);
      const rows = scores.reshape([-1, 10]);
      const labels = Uint32Array.from({ length: rows.shape[0] as number }, (_, i) => i % 10);
      return crossEntropy(rows, runtime.tensor(labels));
    });
    scaler.scale(loss).backward();
    return loss;
  };
  for (let step = 0; step < steps; step++) {
    if (accumulates) (await runtime.step(backward)).dispose();
    const loss = await runtime.step(() => {
      const last = backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return last;
    });
    loss.dispose();
  }
  const names = runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name);
  return {
    sha256: await parameterSha256(model.namedParameters()),
    outcomes: await scaler.drain(),
    own: names?.filter((name) => name === "check-finite" || name === "update-scale"),
  };
}

describe.each(Object.entries(models))("%s", (_, make) => {
  const plain = allPasses.filter(
    (name) => name !== "fuseFiniteChecks" && name !== "fuseScaleUpdate",
  );
  const three = ["check-finite", "check-finite", "update-scale"];

  test("is trained without a launch for loss scaling, to the same bits", async () => {
    const checked = await train(make, { passes: allPasses, accumulates: false });
    const searched = await train(make, { passes: plain, accumulates: false });
    expect([checked.own, searched.own]).toEqual([[], three]);
    expect(checked.sha256).toBe(searched.sha256);
    expect(checked.outcomes).toEqual(searched.outcomes);
    const found = new Set(checked.outcomes.map(({ status }) => status));
    expect(found).toEqual(new Set(["skipped", "applied"]));
  });

  test("is trained to the same bits where gradients accumulate, whose sums are looked at", async () => {
    const checked = await train(make, { passes: allPasses, accumulates: true });
    const searched = await train(make, { passes: plain, accumulates: true });
    expect([checked.own, searched.own]).toEqual([[], three]);
    expect([checked.sha256, checked.outcomes]).toEqual([searched.sha256, searched.outcomes]);
  });
});
