import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device";
import { DigitsCnn } from "@halfstep/models";
import { argmax, gpuRuntime, noGrad } from "@halfstep/tensor/functional";

// A program of a page that classifies images with a CNN, whose bundle the gate `size` weighs.

const runtime = gpuRuntime(await requestDevice());
const model = new DigitsCnn(runtime, { seed: 0 }).eval();

/** The class of an image. */
export async function classify(image: Float32Array): Promise<number> {
  const best = await runtime.step(() =>
    noGrad(() =>
      argmax(
        autocast({ dtype: "float16" }, () => model.forward(runtime.tensor(image, [1, 28, 28, 1]))),
      ),
    ),
  );
  return best.item();
}
