import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { requestTestDevice } from "@halfstep/device/testing";
import { AdamW } from "@halfstep/optim";
import { flatten, gpuRuntime } from "@halfstep/tensor";
import { expect, test } from "vitest";

test("the memory of optimizers that are gone, and of what they trained, is given back", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const length = 2 ** 18;
  const train = async (): Promise<number> => {
    const w = runtime.variable(new Float32Array(length), [length], { requiresGrad: true });
    const optimizer = new AdamW(runtime.target, flatten([w]), { lr: 0.1 });
    await runtime.step(() => {
      w.sum().backward();
      optimizer.step();
      return 0;
    });
    return (await w.toArray())[0] as number;
  };
  const first = await train();
  const one = device.memory.live;
  for (let i = 0; i < 8; i++) expect(await train()).toBe(first);
  const all = device.memory.live;
  // Parameters, gradients and two moments each.
  expect(all - one).toBeGreaterThan(8 * 3 * 4 * length * 0.5);
  for (let tries = 0; tries < 200 && device.memory.live > one; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    collect();
  }
  // The engine may hold on to the latest for a while, but not to all.
  expect(device.memory.live - one).toBeLessThan((all - one) / 3);
  expect(await train()).toBe(first);
});
