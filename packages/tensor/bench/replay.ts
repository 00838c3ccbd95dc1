import { autocast } from "@halfstep/autocast";
import { requestDevice } from "@halfstep/device/node";
import {
  batchNorm,
  conv2d,
  crossEntropy,
  Generator,
  linear,
  maxPool2d,
  type Tensor,
  updateRunningStatistics,
  type Variable,
} from "../src/index.js";
import { gpuRunner } from "../src/run/gpu-runner.js";
import type { Runner } from "../src/run/runner.js";
import { Runtime } from "../src/runtime.js";

// What a training step costs the host once its plan is known, part by part. Times are of this thread, in microseconds.

const steps = 200;
const batch = 8;

const device = await requestDevice();
const times = { record: 0, plan: 0, encode: 0, driver: 0 };
const samples: (typeof times)[] = [];
const now = (): number => performance.now() * 1000;

// The driver's own part: it takes the commands over, and on software adapters may compute here and now.
const { queue } = device.gpu;
const submit = queue.submit.bind(queue);
queue.submit = (commands) => {
  const start = now();
  submit(commands);
  times.driver += now() - start;
};

let recorded = 0;
const runner: Runner = gpuRunner(device, 2);
const timed: Runner = {
  ...runner,
  run(plan, invocation) {
    const start = now();
    times.plan = start - recorded;
    const kept = runner.run(plan, invocation);
    times.encode = now() - start - times.driver;
    return kept;
  },
};
const runtime = new Runtime(timed, {});

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
    const normal = batchNorm(conv2d(x, kernel, undefined, { padding: 1 }), gain, shift);
    updateRunningStatistics({ mean, variance }, normal, { rows: x.size, momentum: 0.1 });
    x = maxPool2d([normal.output], { window: 2 }).relu();
  }
  return crossEntropy(linear(x.reshape([batch, -1]), weight, bias), runtime.tensor(labels));
}

for (let step = 0; step < 20 + steps; step++) {
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
  if (step >= 20) samples.push({ ...times });
}

const launches = runtime.lastPlan?.launches.length as number;
const quantile = (part: keyof typeof times, q: number): number =>
  samples.map((sample) => sample[part]).sort((a, b) => a - b)[
    Math.floor(q * (steps - 1))
  ] as number;
console.log(`${device.label}: a training step of ${launches} launches, ${steps} times`);
console.log("part      µs a step (median, least)   µs a launch");
const row = (name: string, parts: readonly (keyof typeof times)[]): void => {
  const [median, least] = [0.5, 0].map((q) =>
    parts.reduce((sum, part) => sum + quantile(part, q), 0),
  ) as [number, number];
  const perLaunch = [median, least].map((us) => (us / launches).toFixed(2));
  console.log(
    `${name.padEnd(10)}${median.toFixed(0).padStart(8)}${least.toFixed(0).padStart(8)}     ${perLaunch.join("  ")}`,
  );
};
row("record", ["record"]);
row("plan", ["plan"]);
row("encode", ["encode"]);
row("replay", ["plan", "encode"]);
row("driver", ["driver"]);
device.destroy();
