import { defineHostOp } from "../plan/host-ops.js";
import { hostLaunch } from "../record/host-op.js";
import { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { type ContractTest, refusal, same } from "./harness.js";

const doubling = defineHostOp({
  name: "double on the host",
  bindings: [{ name: "x", access: "readwrite" }],
});

/** Doubles in the next turn of the event loop; throws for a number above 100. */
async function double([x]: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  const values = new Float32Array(x?.buffer ?? new ArrayBuffer(0));
  for (const [i, value] of values.entries()) {
    if (value > 100) throw new RangeError(`${value} is too large`);
    values[i] = value * 2;
  }
}

/** State that moves on before its gradient is doubled on the host, and parameters that move after it. */
function open(runtime: Runtime) {
  const parameters = runtime.variable([1, 2], [2]);
  const gradient = runtime.variable([0, 0], [2]);
  const statistics = runtime.variable([1], [1]);
  const step = (rate: number) => (): Tensor => {
    statistics.assign(statistics.add(rate));
    gradient.assign(parameters.mul(rate));
    runtime.target.launch(hostLaunch(doubling, [gradient.operand()], double));
    parameters.assign(parameters.add(gradient));
    return parameters.mul(10);
  };
  return { parameters, statistics, step };
}

export const callsTheHost: ContractTest = async ({ create }) => {
  const runtime = new Runtime(await create(), {});
  const { parameters, statistics, step } = open(runtime);
  const results = [await runtime.step(step(1)), await runtime.step(step(3))];
  same("the first result", (await results[0]?.toArray()) ?? [], [30, 60]);
  same("the second result", (await results[1]?.toArray()) ?? [], [210, 420]);
  same("parameters", await parameters.toArray(), [21, 42]);
  same("statistics", await statistics.toArray(), [5]);
};

export const losesNothing: ContractTest = async ({ create }) => {
  const runtime = new Runtime(await create(), {});
  const { parameters, statistics, step } = open(runtime);
  await runtime.step(step(1));
  await runtime.flush();
  const stepping = runtime.step(step(99));
  const failure = await refusal("flush() behind a function that failed", () =>
    stepping.then(() => runtime.flush()),
  );
  same("parameters after the failure", await parameters.toArray(), [3, 6]);
  same("statistics after the failure", await statistics.toArray(), [2]);
  const again = await refusal("a step after the failure", () => runtime.step(step(1)));
  if (failure !== again) throw new Error(`the failure was ${failure}, and then ${again}`);
};
