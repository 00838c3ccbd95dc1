import { autocast } from "@halfstep/autocast";
import { noGrad, type Runtime } from "@halfstep/tensor";
import type { Example } from "./catalogue.js";

export const precisions = ["float32", "float16", "bfloat16"] as const;
export type Precision = (typeof precisions)[number];

/** Losses of a few steps of plain gradient descent, with a fixed loss scale in float16. */
export async function losses(
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
