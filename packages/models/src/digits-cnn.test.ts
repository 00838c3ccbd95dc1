import { autocast, recipeOf } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { explain } from "@halfstep/nn";
import {
  cpuRuntime,
  crossEntropy,
  gpuRuntime,
  noGrad,
  type Runtime,
  ShapeError,
  type Tensor,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import { DigitsCnn } from "./index.js";

const onGpu = async (): Promise<Runtime> => gpuRuntime(await requestTestDevice());

const trainings = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", onGpu],
] as const;

/** Images of one bright square each, whose place tells the class. */
function squares(count: number): { images: Float32Array; labels: Uint32Array } {
  const images = new Float32Array(count * 784);
  const labels = Uint32Array.from({ length: count }, (_, i) => i % 10);
  for (const [i, label] of labels.entries())
    for (let pixel = 0; pixel < 36; pixel++) {
      const row = 2 + 12 * Math.floor(label / 5) + Math.floor(pixel / 6);
      const column = 5 * (label % 5) + (pixel % 6);
      images[i * 784 + row * 28 + column] = 1 + ((i * 36 + pixel) % 7) / 7;
    }
  return { images, labels };
}

test("it has the parameters and buffers of the paths that checkpoints use", () => {
  const model = new DigitsCnn(cpuRuntime(), { seed: 1 });
  expect([...model.namedParameters()].map(([path, { shape }]) => `${path} [${shape}]`)).toEqual([
    "conv1.weight [3,3,1,16]",
    "bn1.weight [16]",
    "bn1.bias [16]",
    "conv2.weight [3,3,16,32]",
    "bn2.weight [32]",
    "bn2.bias [32]",
    "conv3.weight [3,3,32,64]",
    "bn3.weight [64]",
    "bn3.bias [64]",
    "fc.weight [10,576]",
    "fc.bias [10]",
  ]);
  expect([...model.namedBuffers()].map(([path]) => path)).toEqual([
    "bn1.runningMean",
    "bn1.runningVar",
    "bn2.runningMean",
    "bn2.runningVar",
    "bn3.runningMean",
    "bn3.runningVar",
  ]);
  expect([...model.parameters()].reduce((sum, { size }) => sum + size, 0)).toBe(29_178);
});

test("a seed gives the same parameters again, another seed does not", async () => {
  const bits = async (seed: number): Promise<string> => {
    const state = await new DigitsCnn(cpuRuntime(), { seed }).stateDict();
    return Object.values(state)
      .map(({ data }) => data.join())
      .join("|");
  };
  const first = await bits(7);
  expect(await bits(7)).toBe(first);
  expect(await bits(8)).not.toBe(first);
});

test("an input of another shape is refused by name", () => {
  const runtime = cpuRuntime();
  const model = new DigitsCnn(runtime, { seed: 1 });
  expect(() => model.forward(runtime.zeros([2, 1, 28, 28]))).toThrow(ShapeError);
  expect(() => model.forward(runtime.zeros([2, 1, 28, 28]))).toThrow(
    "DigitsCnn needs an input [batch, 28, 28, 1], not [2,1,28,28]",
  );
});

test.each(trainings)("plain gradient descent in float16 fits eight images: %s", async (_, open) => {
  const { images, labels } = squares(8);
  const runtime = await open();
  const model = new DigitsCnn(runtime, { seed: 3 });
  const parameters = [...model.parameters()];
  const lossOf = (): Tensor => {
    const x = runtime.tensor(images, [8, 28, 28, 1]);
    const y = runtime.tensor(labels);
    const forward = () => crossEntropy(model.forward(x), y);
    return autocast({ dtype: "float16" }, forward);
  };
  const losses: number[] = [];
  for (let step = 0; step < 8; step++) {
    using loss = await runtime.step(() => {
      const value = lossOf();
      value.backward();
      noGrad(() => {
        for (const parameter of parameters)
          if (parameter.grad) parameter.assign(parameter.sub(parameter.grad.mul(0.1)));
      });
      for (const parameter of parameters) parameter.zeroGrad();
      return value;
    });
    losses.push(await loss.item());
  }
  expect(losses[0]).toBeGreaterThan(1.5);
  expect(losses.at(-1)).toBeLessThan(0.1);
});

test("explain runs it by its example inputs", () => {
  const text = explain(recipeOf("O1"), new DigitsCnn(cpuRuntime(), { seed: 1 }));
  expect(text.split("\n").filter((line) => line.includes("conv2d"))).toEqual([
    "conv1 (Conv2d)     conv2d     float32, float32           float16  products and convolutions are lowered",
    "conv2 (Conv2d)     conv2d     float16, float32           float16  products and convolutions are lowered",
    "conv3 (Conv2d)     conv2d     float16, float32           float16  products and convolutions are lowered",
  ]);
});
