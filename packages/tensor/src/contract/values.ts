import { cpuRuntime, Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { type ContractTest, same } from "./harness.js";
import type { Program } from "./programs.js";

async function resultsOf(runtime: Runtime, programs: readonly Program[]): Promise<number[][]> {
  const found: number[][] = [];
  for (const { open } of programs) {
    const step = open(runtime);
    for (const factor of [1, 0.5, -2]) {
      const results = await runtime.step(() => step(factor));
      for (const values of await Promise.all(results.map((each) => each.toArray())))
        found.push([...values]);
      for (const result of results) result.dispose();
    }
  }
  return found;
}

/** Runs steps of a program with changing numbers; all but the first reuse a cached plan. */
export const computes =
  (program: Program): ContractTest =>
  async ({ create }) => {
    const expected = await resultsOf(cpuRuntime(), [program]);
    for (const options of [{}, { passes: [] }]) {
      const found = await resultsOf(new Runtime(await create(), options), [program]);
      const how = options.passes ? "without passes" : "with all passes";
      for (const [i, values] of expected.entries())
        same(`result ${i} ${how}`, found[i] ?? [], values);
    }
  };

/** Alternates between the plans of several programs. */
export const alternates =
  (programs: readonly Program[]): ContractTest =>
  async ({ create }) => {
    const both = [...programs, ...programs];
    const expected = await resultsOf(cpuRuntime(), both);
    const found = await resultsOf(new Runtime(await create(), {}), both);
    for (const [i, values] of expected.entries()) same(`result ${i}`, found[i] ?? [], values);
  };

/** Runs one plan over alternating variables. */
export const takesOtherResidents: ContractTest = async ({ create }) => {
  const runtime = new Runtime(await create(), {});
  const variables = [1, 2, 3].map((value) => runtime.variable([value, -value], [2]));
  const results: Tensor[] = [];
  for (let step = 0; step < 9; step++) {
    const variable = variables[step % 3] as (typeof variables)[0];
    results.push(
      await runtime.step(() => {
        variable.assign(variable.mul(2));
        return variable.add(step);
      }),
    );
  }
  for (const [step, result] of results.entries()) {
    const value = ((step % 3) + 1) * 2 ** (Math.floor(step / 3) + 1);
    same(`the result of step ${step}`, await result.toArray(), [value + step, step - value]);
  }
};
