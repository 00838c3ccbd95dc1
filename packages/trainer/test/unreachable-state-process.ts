// Trains models that are unreachable afterwards, in a fresh heap: node --expose-gc unreachable-state-process.js. First optimizers of
// one runtime are dropped, then runtimes. Prints the bytes of GPU memory after the first, after nine, and after garbage collection, and
// the result of training.
import { requestDevice } from "@halfstep/device/node";
import { AdamW } from "@halfstep/optim";
import { flatten, gpuRuntime, type Runtime } from "@halfstep/tensor";

const length = 2 ** 18;
const device = await requestDevice();

async function train(runtime: Runtime): Promise<number> {
  const w = runtime.variable(new Float32Array(length), [length], { requiresGrad: true });
  const optimizer = new AdamW(runtime.target, flatten([w]), { lr: 0.1 });
  await runtime.step(() => {
    w.sum().backward();
    optimizer.step();
    return 0;
  });
  return (await w.toArray())[0] as number;
}

async function drop(runtimeOf: () => Runtime) {
  const results = [await train(runtimeOf())];
  const one = device.memory.live;
  for (let i = 0; i < 8; i++) results.push(await train(runtimeOf()));
  const all = device.memory.live;
  for (let tries = 0; tries < 200 && device.memory.live > one; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    globalThis.gc?.();
  }
  const left = device.memory.live;
  results.push(await train(runtimeOf()));
  return { one, all, left, results };
}

const shared = gpuRuntime(device);
const optimizers = await drop(() => shared);
const runtimes = await drop(() => gpuRuntime(device));
process.stdout.write(JSON.stringify({ length, optimizers, runtimes }));
// Otherwise the device keeps the process alive.
process.exit(0);
