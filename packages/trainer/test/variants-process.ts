// Infers and trains on a GPU and infers on the CPU, as far as its bundle can. Prints a line of JSON: results, or the errors instead.
import { autocast } from "@halfstep/autocast";
import { LeftOutError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { GradScaler, scaledValue } from "@halfstep/grad-scaler";
import { DigitsCnn } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  backward,
  cpuRuntime,
  crossEntropy,
  flatten,
  gpuRuntime,
  noGrad,
  type Runtime,
} from "@halfstep/tensor/functional";

const labels = Uint32Array.of(3, 1, 4);
const images = Float32Array.from({ length: labels.length * 784 }, (_, i) => Math.sin(i) ** 2);

async function logits(runtime: Runtime): Promise<readonly number[]> {
  const model = new DigitsCnn(runtime, { seed: 1 }).eval();
  const result = await runtime.step(() =>
    noGrad(() =>
      autocast({ dtype: "float16" }, () =>
        model.forward(runtime.tensor(images, [labels.length, 28, 28, 1])),
      ),
    ),
  );
  return [...(await result.toArray())];
}

/** The losses of five steps. */
async function losses(runtime: Runtime, isTraining: boolean): Promise<readonly number[]> {
  const model = new DigitsCnn(runtime, { seed: 1 }).train(isTraining);
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 1e-3 });
  const scaler = new GradScaler(ampPrimitives(runtime));
  const found: number[] = [];
  for (let step = 0; step < 5; step++) {
    const loss = await runtime.step(() => {
      const x = runtime.tensor(images, [labels.length, 28, 28, 1]);
      const loss = autocast({ dtype: "float16" }, () =>
        crossEntropy(model.forward(x), runtime.tensor(labels)),
      );
      backward(scaledValue(scaler.scale(loss)));
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return loss;
    });
    found.push(await loss.item());
  }
  return found;
}

async function orError<T>(results: Promise<T>): Promise<T | string> {
  try {
    return await results;
  } catch (error) {
    if (error instanceof LeftOutError) return error.message;
    throw error;
  }
}

const runtime = gpuRuntime(await requestDevice());
const found = {
  inferred: await orError(logits(runtime)),
  trained: await orError(losses(runtime, true)),
  fineTuned: await orError(losses(runtime, false)),
  onCpu: await orError(logits(cpuRuntime())),
};
console.log(JSON.stringify(found));
process.exit();
