import { SGD } from "@halfstep/optim";
import { cpuRuntime, flatten, type Variable } from "@halfstep/tensor";
import { expect, it } from "vitest";

it("parameters that an optimizer gets between two backward passes keep the gradients of the first", async () => {
  const runtime = cpuRuntime();
  const variable = (name: string): Variable =>
    runtime.variable([1], [1], { requiresGrad: true, name });
  const [a, b] = [variable("a"), variable("b")];
  const backward = (): void => a.mul(3).add(b.mul(5)).sum().backward();
  await runtime.step(backward);
  const optimizer = new SGD(runtime.target, flatten([a]), { lr: 1 });
  optimizer.addParamGroup({ params: flatten([b]) });
  await runtime.step(() => {
    backward();
    optimizer.step();
  });
  // As in torch: 1 - 2 · 3 and 1 - 2 · 5.
  expect([await a.item(), await b.item()]).toEqual([-5, -9]);
});
