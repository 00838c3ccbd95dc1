// Trains models that nobody holds afterwards, in a heap that nobody else has filled: node --expose-gc unreachable-state-process.js.
// Prints the bytes of GPU memory after the first, after nine, and after the collector has run; and what training gave.
import { requestDevice } from "@halfstep/device/node";
import { AdamW } from "@halfstep/optim";
import { flatten, gpuRuntime } from "@halfstep/tensor";

const length = 2 ** 18;
const device = await requestDevice();
const runtime = gpuRuntime(device);

async function train(): Promise<number> {
  const w = runtime.variable(new Float32Array(length), [length], { requiresGrad: true });
  const optimizer = new AdamW(runtime.target, flatten([w]), { lr: 0.1 });
  await runtime.step(() => {
    w.sum().backward();
    optimizer.step();
    return 0;
  });
  return (await w.toArray())[0] as number;
}

const results = [await train()];
const one = device.memory.live;
for (let i = 0; i < 8; i++) results.push(await train());
const all = device.memory.live;
for (let tries = 0; tries < 200 && device.memory.live > one; tries++) {
  await new Promise((resolve) => setTimeout(resolve, 5));
  globalThis.gc?.();
}
const left = device.memory.live;
results.push(await train());
process.stdout.write(JSON.stringify({ length, one, all, left, results }));
// Otherwise the device keeps the process alive.
process.exit(0);
