// Trains models that are unreachable afterwards, in a fresh heap: node --expose-gc unreachable-state-process.js. First optimizers of
// one runtime are dropped, then runtimes. Prints the bytes of GPU memory after the first, after nine, and after garbage collection, and
// the result of training.
import { requestDevice } from "@halfstep/device/node";
import { AdamW } from "@halfstep/optim";
import { flatten, gpuRuntime, type Runtime } from "@halfstep/tensor";

const length = 2 ** 18;
const device = await requestDevice();

/** The result of training, and what keeps its memory. */
async function train(runtime: Runtime): Promise<readonly [result: number, state: unknown]> {
  const w = runtime.variable(new Float32Array(length), [length], { requiresGrad: true });
  const optimizer = new AdamW(runtime.target, flatten([w]), { lr: 0.1 });
  await runtime.step(() => {
    w.sum().backward();
    optimizer.step();
    return 0;
  });
  return [(await w.toArray())[0] as number, [runtime, optimizer, w]];
}

/** Collects garbage until no more than `bytes` of GPU memory are left, for a second or two at most. */
async function collectDownTo(bytes: number): Promise<void> {
  for (let tries = 0; tries < 200 && device.memory.live > bytes; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    globalThis.gc?.();
  }
}

async function drop(runtimeOf: () => Runtime) {
  const results: number[] = [];
  // Until all are counted, nothing is collected.
  const states: unknown[] = [];
  const trained = async (): Promise<void> => {
    const [result, state] = await train(runtimeOf());
    results.push(result);
    states.push(state);
  };
  await trained();
  const one = device.memory.live;
  for (let i = 0; i < 8; i++) await trained();
  const all = device.memory.live;
  states.length = 0;
  await collectDownTo(one);
  const left = device.memory.live;
  await trained();
  return { one, all, left, results };
}

const shared = gpuRuntime(device);
const optimizers = await drop(() => shared);
// What the first part leaves is not to be collected during the second.
await collectDownTo(0);
const runtimes = await drop(() => gpuRuntime(device));
process.stdout.write(JSON.stringify({ length, optimizers, runtimes }));
// Otherwise the device keeps the process alive.
process.exit(0);
