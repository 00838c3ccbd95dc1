import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device";
import { GradScaler, scaledValue } from "@halfstep/grad-scaler";
import { Mlp } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import {
  ampPrimitives,
  backward,
  crossEntropy,
  flatten,
  gpuRuntime,
} from "@halfstep/tensor/functional";

// A program of a page that trains an MLP, whose bundle the gate `size` weighs.

const runtime = gpuRuntime(await requestDevice());
const model = new Mlp(runtime, { sizes: [784, 128, 10], seed: 0 });
const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 1e-3 });
const scaler = new GradScaler(ampPrimitives(runtime));

/** Takes one step, and returns its loss. */
export async function step(images: Float32Array, labels: Uint32Array): Promise<number> {
  const loss = await runtime.step(() => {
    const x = runtime.tensor(images, [labels.length, 784]);
    const loss = autocast({ dtype: "float16" }, () =>
      crossEntropy(model.forward(x), runtime.tensor(labels)),
    );
    backward(scaledValue(scaler.scale(loss)));
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    return loss;
  });
  return loss.item();
}
