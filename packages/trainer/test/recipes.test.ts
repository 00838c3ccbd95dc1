import { recipeOf } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import {
  applyRecipe,
  BatchNorm2d,
  Conv2d,
  Flatten,
  Generator,
  Linear,
  ReLU,
  Sequential,
} from "@halfstep/nn";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  flattenByDType,
  gpuRuntime,
  type Runtime,
  type Tensor,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import { evaluate, recipeFor, scalerOptionsFor, storageFor, train } from "../src/index.js";

interface Batch {
  /** [n, 6, 6, 1] */
  readonly images: Float32Array;
  readonly labels: Uint32Array;
}

/** Images of a bright row or column, on noise; which one tells the class. */
function batchOf(seed: number, size = 24): Batch {
  const labels = Uint32Array.from({ length: size }, (_, i) => (i + seed) % 4);
  const images = Float32Array.from({ length: size * 36 }, (_, i) => {
    const label = labels[Math.floor(i / 36)] as number;
    const [row, column] = [Math.floor(i / 6) % 6, i % 6];
    const isBright = label < 2 ? row === 1 + 3 * label : column === 1 + 3 * (label - 2);
    const noise = Math.sin((i + 1) * 12.9898 + seed * 78.233) * 43758.5453;
    return (isBright ? 1 : 0) + (noise - Math.floor(noise)) / 2;
  });
  return { images, labels };
}

const network = (runtime: Runtime): Sequential => {
  const generator = new Generator(1);
  return new Sequential(
    new Conv2d(runtime, 1, 4, { kernelSize: 3, generator }),
    new BatchNorm2d(runtime, 4),
    new ReLU(),
    new Flatten(),
    new Linear(runtime, 64, 4, { generator }),
  );
};

const recipes: readonly (readonly [name: string, given: unknown])[] = [
  ["O0", "O0"],
  ["O1", "O1"],
  ["O2", "O2"],
  ["O2 with a static scale", { extends: "O2", lossScale: 128 }],
  ["O3 with a scale", { extends: "O3", lossScale: 128 }],
  ["JMP", "params=float32,compute=bfloat16,output=float32"],
  ["Keras", "mixed_float16"],
  ["an exception", { extends: "O2", modules: { 4: "float32" } }],
];

test.each(recipes)("%s trains, and one recipe serves evaluation too", async (_, given) => {
  const recipe = recipeOf(given);
  expect(recipeFor(recipe)).toBe(recipe);
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const model = applyRecipe(network(runtime), recipe);
  const optimizer = new AdamW(
    runtime.target,
    flattenByDType(model.parameters()).map((params) => ({ params })),
    { lr: 0.02, storage: storageFor(recipe) },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...scalerOptionsFor(recipe),
    outcomeSchedule: false,
  });
  const logits = ({ images, labels }: Batch): Tensor =>
    model.forward(runtime.tensor(images, [labels.length, 6, 6, 1]));
  const batches = Array.from({ length: 24 }, (_, i) => batchOf(i));
  const result = await train<Batch>({
    runtime,
    device,
    precision: recipe,
    loss: (batch) => crossEntropy(logits(batch), runtime.tensor(batch.labels)),
    optimizer,
    scaler,
    epochs: 2,
    batches: () => batches,
    lr: () => 0.02,
  });
  model.eval();
  const { accuracy } = await evaluate<Batch>({
    runtime,
    precision: recipe,
    logits,
    labels: ({ labels }) => labels,
    batches: [batchOf(1000, 96)],
  });
  expect(accuracy).toBeGreaterThan(0.9);
  expect(result.appliedSteps).toBeGreaterThan(40);
  expect(result.perStep).toMatchObject({ castDispatches: 0, hostWaits: 0 });
});
