import { GradScaler, ScalerStateError } from "@halfstep/grad-scaler";
import { AdamW, LARC, SGD } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { classifier } from "./classes.js";

test("a step without gradients names the parameters that should have had some", async () => {
  const runtime = cpuRuntime();
  const optimizers = [
    new AdamW(runtime.target, flatten(classifier(runtime).parameters())),
    new LARC(new SGD(runtime.target, flatten(classifier(runtime).parameters()))),
  ];
  for (const optimizer of optimizers) {
    const scaler = new GradScaler(ampPrimitives(runtime));
    const step = runtime.step(() => scaler.step(optimizer));
    await expect(step).rejects.toThrow(ScalerStateError);
    await expect(step).rejects.toThrow(
      'the optimizer of "layers.0.weight", "layers.0.bias", "layers.1.weight" and 1 more has no gradients',
    );
  }
});
