import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, noGrad, type Runtime } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { type Example, examples } from "./catalogue.js";

const precisions = ["float32", "float16", "bfloat16"] as const;
type Precision = (typeof precisions)[number];

/** Losses of a few steps of plain gradient descent, with a fixed loss scale in float16. */
async function losses(
  runtime: Runtime,
  { make, lr }: Example,
  precision: Precision,
  steps: number,
): Promise<readonly number[]> {
  const { model, loss } = make(runtime, 3);
  const scale = precision === "float16" ? 1024 : 1;
  const parameters = [...model.parameters()];
  const found: number[] = [];
  for (let step = 0; step < steps; step++) {
    using value = await runtime.step(() => {
      const value = precision === "float32" ? loss() : autocast({ dtype: precision }, loss);
      value.mul(scale).backward();
      noGrad(() => {
        for (const parameter of parameters) {
          if (parameter.grad) parameter.assign(parameter.sub(parameter.grad.mul(lr / scale)));
          parameter.zeroGrad();
        }
      });
      return value;
    });
    found.push(await value.item());
  }
  return found;
}

describe.each(examples)("$name", (example) => {
  test.each(precisions)("a few steps lower the loss in %s", async (precision) => {
    const found = await losses(cpuRuntime(), example, precision, 6);
    expect(found.every(Number.isFinite)).toBe(true);
    expect(found.at(-1)).toBeLessThan(0.9 * (found[0] as number));
  });
});

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
