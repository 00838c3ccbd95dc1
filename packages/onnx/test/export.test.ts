import { recipeOf, withRecipe } from "@halfstep/autocast";
import { applyRecipe } from "@halfstep/nn";
import { noGrad, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { type OnnxOptions, toOnnx } from "../src/index.js";
import { type Case, cases, runtime } from "./cases.js";
import { runOnnx } from "./session.js";

/** The largest difference from the model's own numbers, in terms of the largest of these. */
async function error(
  { model, given }: Case,
  forward: (x: readonly unknown[]) => unknown,
  found: readonly number[],
): Promise<number> {
  model.eval();
  const result = await runtime.step(() => noGrad(() => forward(given)) as Tensor);
  const wanted = await result.toArray();
  result.dispose();
  expect(found.length).toBe(wanted.length);
  const largest = Math.max(...wanted.map(Math.abs));
  return Math.max(...found.map((value, i) => Math.abs(value - (wanted[i] as number)))) / largest;
}

test.each(Object.entries(cases))("%s computes the same in ONNX Runtime", async (_, make) => {
  const each = make();
  const { model, example, feeds, options } = each;
  const run = (given: readonly unknown[]): unknown => model.forward(...(given as never[]));
  const numbersOf = async (more: OnnxOptions): Promise<number[]> => {
    const bytes = await toOnnx(model, example, { ...options, ...more });
    const [output] = Object.values(await runOnnx(bytes, feeds));
    return output?.values ?? [];
  };
  expect(await error(each, run, await numbersOf({}))).toBeLessThan(2e-6);
  expect(await error(each, run, await numbersOf({ opset: 21 }))).toBeLessThan(2e-6);
  const recipe = recipeOf("O1");
  const halfRun = (given: readonly unknown[]): unknown =>
    withRecipe(recipe, (() => run(given)) as () => never);
  const halves = await numbersOf({ recipe });
  expect(await error(each, halfRun, halves)).toBeLessThan(4e-3);
  const widened = await numbersOf({ recipe, float32Outputs: true });
  expect(await error(each, halfRun, widened)).toBeLessThan(4e-3);
  applyRecipe(model, recipeOf("O2"));
  expect(await error(each, run, await numbersOf({}))).toBeLessThan(6e-3);
});
