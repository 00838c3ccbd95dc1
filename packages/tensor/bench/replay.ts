import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device/node";
import {
  batchNorm,
  conv2d,
  crossEntropy,
  Generator,
  gpuRunner,
  linear,
  maxPool2d,
  type Runner,
  runtime as runtimeOf,
  type Tensor,
  type Variable,
} from "../src/index.js";

// Measures the host time of the parts of a training step with a cached plan: times of this thread, in microseconds.

const steps = 200;
const batch = 8;

const device = await requestDevice();
const times = { record: 0, plan: 0, encode: 0, driver: 0 };
const samples: (typeof times)[] = [];
const now = (): number => performance.now() * 1000;

// The driver's part: it takes the commands, and software adapters may compute synchronously here.
const { queue } = device.gpu;
const submit = queue.submit.bind(queue);
queue.submit = (commands) => {
  const start = now();
  submit(commands);
  times.driver += now() - start;
};

let recorded = 0;
const runner = gpuRunner(device, { maxInFlight: 2 });
const timed: Runner = {
  ...runner,
  start(plan, invocation) {
    const start = now();
    times.plan = start - recorded;
    const run = runner.start(plan, invocation);
    return {
      ...run,
      finish() {
        const kept = run.finish();
        times.encode = now() - start - times.driver;
        return kept;
      },
    };
  },
};
const runtime = runtimeOf(timed);

/** The layers of the digits CNN of `@halfstep/models`, and plain gradient descent. */
const generator = new Generator(0);
const parameter = (shape: readonly number[], scale: number): Variable => {
  const length = shape.reduce((a, b) => a * b, 1);
  const values = Float32Array.from({ length }, () => scale * generator.normal());
  return runtime.variable(values, shape, { requiresGrad: true });
};
const blocks = [
  [1, 16],
  [16, 32],
  [32, 64],
].map(([inputs, outputs]) => ({
  kernel: parameter([3, 3, inputs as number, outputs as number], 0.1),
  gain: parameter([outputs as number], 1),
  shift: parameter([outputs as number], 0),
  mean: runtime.variable(new Float32Array(outputs as number), [outputs as number]),
  variance: runtime.variable(new Float32Array(outputs as number), [outputs as number]),
}));
const weight = parameter([10, 576], 0.05);
const bias = parameter([10], 0);
const parameters = [
  ...blocks.flatMap(({ kernel, gain, shift }) => [kernel, gain, shift]),
  ...[weight, bias],
];
const images = new Float32Array(batch * 784).fill(0.5);
const labels = new Uint32Array(batch);

function forward(): Tensor {
  let x = runtime.tensor(images, [batch, 28, 28, 1]);
  for (const { kernel, gain, shift, mean, variance } of blocks) {
    const image = conv2d(x, kernel, undefined, { padding: 1 });
    const { output } = batchNorm(image, gain, shift, { running: { mean, variance } });
    x = maxPool2d(output, { window: 2 }).relu();
  }
  return crossEntropy(linear(x.reshape([batch, -1]), weight, bias), runtime.tensor(labels));
}

for (let step = 0; step < 20 + steps; step++) await train(step >= 20);

async function train(isCounted: boolean): Promise<void> {
  Object.assign(times, { record: 0, plan: 0, encode: 0, driver: 0 });
  await runtime.step(() => {
    const start = now();
    const loss = autocast({ dtype: "float16" }, forward).mul(1024);
    loss.backward();
    for (const p of parameters) if (p.grad) p.assign(p.sub(p.grad.mul(1e-6)));
    for (const p of parameters) p.zeroGrad();
    recorded = now();
    times.record = recorded - start;
    return 0;
  });
  if (isCounted) samples.push({ ...times });
}

/** Microseconds of the calls of WebGPU that encode a step, made in a bare loop, between steps as those of a step are. */
async function bareReplay(): Promise<readonly number[]> {
  const { gpu } = device;
  const calls: ((pass: GPUComputePassEncoder) => void)[] = [];
  const pass = gpu.createCommandEncoder().beginComputePass();
  const prototype: GPUComputePassEncoder = Object.getPrototypeOf(pass);
  const { setPipeline, setBindGroup, dispatchWorkgroups } = prototype;
  const own = { setPipeline, setBindGroup, dispatchWorkgroups };
  for (const [name, method] of Object.entries(own))
    Object.assign(prototype, {
      [name](this: GPUComputePassEncoder, ...args: unknown[]) {
        calls.push((to) => Reflect.apply(method, to, args));
        Reflect.apply(method, this, args);
      },
    });
  await train(false);
  Object.assign(prototype, own);
  const taken: number[] = [];
  for (let i = 0; i < steps; i++) {
    await train(false);
    const start = now();
    const commands = gpu.createCommandEncoder();
    const encoder = commands.beginComputePass();
    for (const call of calls) call(encoder);
    encoder.end();
    commands.finish();
    taken.push(now() - start);
  }
  return taken;
}

const bare = await bareReplay();
const launches = runtime.lastPlan?.launches.length as number;
console.log(`${device.label}: a training step of ${launches} launches, ${steps} times`);
console.log("                              µs a step       µs a launch");
console.log("                           median   least   median  least");
const row = (name: string, values: readonly number[]): void => {
  const sorted = [...values].sort((x, y) => x - y);
  const [median, least] = [sorted[Math.floor(steps / 2)], sorted[0]] as [number, number];
  const perLaunch = [median, least].map((us) => (us / launches).toFixed(2).padStart(7));
  const perStep = [median, least].map((us) => us.toFixed(0).padStart(8));
  console.log(`${name.padEnd(25)}${perStep.join("")}  ${perLaunch.join("")}`);
};
const part = (name: keyof typeof times): number[] => samples.map((sample) => sample[name]);
row("record", part("record"));
row("look the plan up", part("plan"));
row("encode", part("encode"));
row("  the same calls, bare", bare);
row("submit", part("driver"));
device.destroy();
