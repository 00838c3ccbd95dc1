import { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { type ContractTest, refusal, same } from "./harness.js";

/** More steps than a runner allows in flight. */
const steps = 40;

export const getsReady: ContractTest = async ({ create }) => {
  const runner = await create();
  await runner.ready();
  await runner.assertWell();
  const runtime = new Runtime(runner, {});
  const total = runtime.variable([0], [1]);
  const kept: Tensor[] = [];
  for (let step = 1; step <= steps; step++)
    kept.push(
      await runtime.step(() => {
        total.assign(total.add(step));
        return total.mul(1);
      }),
    );
  await runner.ready();
  await runner.assertWell();
  for (const [i, result] of kept.entries())
    same(`the sum after step ${i + 1}`, await result.toArray(), [((i + 1) * (i + 2)) / 2]);
};

/** Passes where runners cannot fail. */
export const staysFailed: ContractTest = async ({ createFailing }) => {
  if (!createFailing) return;
  const { runner, fail } = await createFailing();
  const runtime = new Runtime(runner, {});
  const variable = runtime.variable([1, 2], [2]);
  const result = await runtime.step(() => variable.add(1));
  same("a step before the failure", await result.toArray(), [2, 3]);
  fail();
  const first = await refusal("assertWell() after a failure", () => runner.assertWell());
  const again = await refusal("assertWell() asked again", () => runner.assertWell());
  if (first !== again) throw new Error(`the failure was ${first}, and then ${again}`);
  await refusal("ready() after a failure", () => runner.ready());
  await refusal("a read after a failure", () => variable.toArray());
  let isCalled = false;
  await refusal("a step after a failure", () =>
    runtime.step(() => {
      isCalled = true;
    }),
  );
  if (isCalled) throw new Error("a step after a failure was recorded: ready() must reject");
};
