import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device";
import { GradScaler } from "@halfstep/grad-scaler";
import { DigitsCnn } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flatten, gpuRuntime, type Tensor } from "@halfstep/tensor";

const warmUp = 6;
const steps = 12;

/** What steps of training asked of WebGPU. */
export interface Steady {
  readonly pipelines: number;
  readonly buffers: number;
  readonly submits: number;
  readonly steps: number;
  /** Milliseconds from the first step's beginning until it was submitted. */
  readonly firstStep: number;
  /** The longest round trip of another device in that time, in milliseconds. */
  readonly roundTrip: number;
  readonly roundTrips: number;
}

/** Calls of WebGPU, counted below the library. */
function countCalls(): Record<"pipelines" | "buffers" | "submits", number> {
  const calls = { pipelines: 0, buffers: 0, submits: 0 };
  const count = (owner: object, name: string, kind: keyof typeof calls): void => {
    const members = owner as Record<string, (...given: unknown[]) => unknown>;
    const original = members[name] as (...given: unknown[]) => unknown;
    members[name] = function (this: unknown, ...given: unknown[]) {
      calls[kind]++;
      return original.apply(this, given);
    };
  };
  count(GPUDevice.prototype, "createComputePipeline", "pipelines");
  count(GPUDevice.prototype, "createComputePipelineAsync", "pipelines");
  count(GPUDevice.prototype, "createBuffer", "buffers");
  count(GPUQueue.prototype, "submit", "submits");
  return calls;
}

/** Measures round trips of a device until it is stopped. */
async function measureRoundTrips() {
  const adapter = (await navigator.gpu.requestAdapter()) as GPUAdapter;
  const gpu = await adapter.requestDevice();
  const found = { longest: 0, count: 0 };
  let isRunning = true;
  const running = (async () => {
    while (isRunning) {
      const began = performance.now();
      gpu.queue.submit([]);
      await gpu.queue.onSubmittedWorkDone();
      found.longest = Math.max(found.longest, performance.now() - began);
      found.count++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    isRunning = false;
    await running;
    gpu.destroy();
    return found;
  };
}

/** Trains a CNN in float16. */
export async function steadySteps(): Promise<Steady> {
  const device = await requestDevice();
  const runtime = gpuRuntime(device);
  const model = new DigitsCnn(runtime, { seed: 1 });
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 1e-3 });
  const scaler = new GradScaler(ampPrimitives(runtime), { outcomeSchedule: false });
  const images = Float32Array.from({ length: 8 * 784 }, (_, i) => ((i * 37) % 101) / 101);
  const labels = Uint32Array.from({ length: 8 }, (_, i) => i);
  const step = (): Promise<Tensor> =>
    runtime.step(() => {
      const x = runtime.tensor(images, [8, 28, 28, 1]);
      const loss = autocast({ dtype: "float16" }, () =>
        crossEntropy(model.forward(x), runtime.tensor(labels)),
      );
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      return loss;
    }) as Promise<Tensor>;
  const stop = await measureRoundTrips();
  const began = performance.now();
  (await step()).dispose();
  const firstStep = performance.now() - began;
  const { longest, count } = await stop();
  for (let i = 1; i < warmUp; i++) (await step()).dispose();
  await device.settled();
  const calls = countCalls();
  for (let i = 0; i < steps; i++) (await step()).dispose();
  const asked = { ...calls };
  await device.settled();
  device.destroy();
  return { ...asked, steps, firstStep, roundTrip: longest, roundTrips: count };
}
