import { recipeOf } from "@halfstep/autocast";
import { Mlp } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import { SGD } from "@halfstep/optim";
import { ClosedTensorError, cpuRuntime, flatten } from "@halfstep/tensor";
import { expect, test } from "vitest";

test.each([
  ["half()", (model: Mlp) => model.half()],
  ["applyRecipe()", (model: Mlp) => applyRecipe(model, recipeOf("O2"))],
])(
  "a step after %s came too late is refused, instead of training what no model uses",
  async (_, late) => {
    const runtime = cpuRuntime();
    const model = new Mlp(runtime, { sizes: [2, 3], seed: 1 });
    const optimizer = new SGD(runtime.target, flatten(model.parameters()), { lr: 0.5 });
    late(model);
    const step = (): Promise<void> =>
      runtime.step(() => {
        model
          .forward(runtime.tensor([1, 2], [1, 2], { dtype: "float16" }))
          .sum()
          .backward();
        optimizer.step();
      });
    await expect(step()).rejects.toThrow(ClosedTensorError);
    await expect(step()).rejects.toThrow("Call them before flatten()");
  },
);
