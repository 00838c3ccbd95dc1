import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { type Example, examples } from "./catalogue.js";
import { losses, type Precision } from "./descent.js";

const onGpu = ["ResNet-20", "GPT", "BERT for tags, with a CRF", "U-Net"];

/** Two steps of a GPU beside those of the CPU: the largest relative error of a loss. */
async function lossError(example: Example, precision: Precision): Promise<number> {
  const found = await losses(gpuRuntime(await requestTestDevice()), example, precision, 2);
  const expected = await losses(cpuRuntime(), example, precision, 2);
  return Math.max(...expected.map((loss, i) => Math.abs((found[i] as number) / loss - 1)));
}

// In float16 the gradients of so small a ResNet have noise of about two hundredths, which depends on the order of sums. After a
// whole step the loss differs by up to 0.025 between orders, after a quarter of a step by less than 0.007.
test.each(examples.filter(({ name }) => onGpu.includes(name)))(
  "a GPU takes the same steps in float16: $name",
  async (example) => {
    expect(await lossError({ ...example, lr: example.lr / 4 }, "float16")).toBeLessThan(0.01);
  },
);

test("a GPU takes the same steps of a ResNet in float32", async () => {
  const example = examples.find(({ name }) => name === "ResNet-20") as Example;
  expect(await lossError(example, "float32")).toBeLessThan(1e-5);
});
