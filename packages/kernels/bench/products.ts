/**
 * Speed of matrix products and convolutions in GFLOP/s, with the bandwidth of a copy in the same run: `npm run bench`.
 * An argument selects lines by a part of their name.
 */
import type { Binding, LaunchTarget } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import {
  type Conv2dAttributes,
  conv2d,
  conv2dInputGradient,
  conv2dOutputSize,
  conv2dWeightGradient,
} from "../src/conv2d.js";
import { elementwise } from "../src/elementwise.js";
import { identity } from "../src/expressions.js";
import { type MatmulAttributes, matmul } from "../src/matmul.js";

type Storage = "float32" | "float16" | "bfloat16";
type Launches = (target: LaunchTarget<GPUBuffer>) => void;

const repeats = 9;
const wanted = process.argv[2] ?? "";
const device = await requestDevice();
const { adapter, tier, subgroupSize } = device.capabilities;
const isSoftware = /llvmpipe|swiftshader/i.test(adapter.description);
console.log(
  `${adapter.description}; tier ${tier}, subgroups of ${subgroupSize}; best of ${repeats}`,
);

/** Milliseconds of the best run, on the wall and of all CPU cores together, and of the first run, which compiles. */
async function time(launches: Launches): Promise<{ wall: number; cpu: number; first: number }> {
  const scratch: GPUBuffer[] = [];
  const encoder = device.encoder();
  const target: LaunchTarget<GPUBuffer> = {
    launch: (launch) => encoder.launch(launch),
    allocate(bytes) {
      scratch.push(encoder.allocate(bytes));
      return scratch.at(-1) as GPUBuffer;
    },
  };
  const run = async (sleep: number) => {
    launches(target);
    const cpu = process.cpuUsage();
    const start = performance.now();
    encoder.submit();
    // A pending promise polls and would take a core from a software adapter, so that we sleep as long as it works.
    if (sleep > 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, sleep);
    const asked = performance.now();
    const { user, system } = process.cpuUsage(cpu);
    await device.gpu.queue.onSubmittedWorkDone();
    const end = performance.now();
    for (const buffer of scratch.splice(0)) device.release(buffer);
    return { wall: end - start, cpu: (user + system) / 1000, isLate: end - asked < 0.3 };
  };
  const first = (await run(0)).wall;
  let guess = (await run(0)).wall;
  let wall = guess;
  let cpu = Number.POSITIVE_INFINITY;
  for (let i = 0; i < repeats; i++) {
    const whole = await run(isSoftware ? guess * 1.2 : 0);
    if (whole.isLate) cpu = Math.min(cpu, whole.cpu);
    else guess *= 1.2;
    wall = Math.min(wall, (await run(isSoftware ? wall * 0.85 : 0)).wall);
  }
  return { wall, cpu, first };
}

const tensor = (length: number, dtype: Storage): Binding<GPUBuffer> => {
  const buffer = device.allocate(length * 4);
  const values = Float32Array.from({ length }, (_, i) => ((i * 7) % 13) / 13 - 0.5);
  device.write(buffer, 0, dtype === "float32" ? values : new Uint16Array(length));
  return { buffer, offset: 0, length, dtype };
};

async function report(name: string, flops: number, launches: Launches): Promise<void> {
  if (!name.includes(wanted)) return;
  const { wall, cpu, first } = await time(launches);
  const rate = (ms: number): string => (flops / ms / 1e6).toFixed(1).padStart(7);
  // The clock of CPU time is too coarse for less.
  const perCore = isSoftware && wall > 1 ? `${rate(cpu)} GFLOP/s a core of CPU time` : "";
  console.log(
    `${name.padEnd(54)}${rate(wall)} GFLOP/s ${perCore}, ${wall.toFixed(2)} ms, first ${first.toFixed(0)} ms`,
  );
}

async function product(shape: MatmulAttributes, dtype: Storage): Promise<void> {
  const { m, n, k } = shape;
  const operands = { a: tensor(m * k, dtype), b: tensor(k * n, dtype), out: tensor(m * n, dtype) };
  const letters = `${shape.transA ? "t" : "n"}${shape.transB ? "t" : "n"}`;
  await report(`matmul ${letters} ${m}×${n}×${k} ${dtype}`, 2 * m * n * k, (target) =>
    matmul(target, operands, shape),
  );
  for (const { buffer } of Object.values(operands)) device.release(buffer);
}

async function convolution(
  attributes: Conv2dAttributes,
  dtype: Storage,
  rounding?: "float16" | "bfloat16",
): Promise<void> {
  const { batch, height, width, inChannels, outChannels, kernelHeight, kernelWidth } = attributes;
  const [outHeight, outWidth] = conv2dOutputSize(attributes);
  const pixels = batch * outHeight * outWidth;
  const depth = kernelHeight * kernelWidth * inChannels;
  const input = tensor(batch * height * width * inChannels, dtype);
  const weight = {
    ...tensor(depth * outChannels, rounding ? "float32" : dtype),
    ...(rounding && { rounding }),
  };
  const out = tensor(pixels * outChannels, dtype);
  const gradient = tensor(depth * outChannels, "float32");
  const flops = 2 * pixels * depth * outChannels;
  const name = `conv ${inChannels}→${outChannels} at ${height}×${width} ${dtype}${rounding ? ", weight rounded" : ""}`;
  await report(`${name} forward`, flops, (target) =>
    conv2d(target, { input, weight, out }, attributes),
  );
  await report(`${name} input gradient`, flops, (target) =>
    conv2dInputGradient(target, { outGradient: out, weight, inputGradient: input }, attributes),
  );
  await report(`${name} weight gradient`, flops, (target) =>
    conv2dWeightGradient(target, { input, outGradient: out, weightGradient: gradient }, attributes),
  );
  for (const { buffer } of [input, weight, out, gradient]) device.release(buffer);
}

async function copy(length: number): Promise<void> {
  const x = { ...tensor(length, "float32"), shape: [length] };
  const y = { ...tensor(length, "float32"), shape: [length] };
  const { wall, cpu } = await time((target) => target.launch(elementwise(identity, [x], y)));
  const rate = (ms: number): string => `${((length * 8) / ms / 1e6).toFixed(1)} GB/s`;
  const perCore = isSoftware ? `, ${rate(cpu)} a core of CPU time` : "";
  console.log(`copy of ${length * 4} bytes: ${rate(wall)} read and written${perCore}`);
  for (const { buffer } of [x, y]) device.release(buffer);
}

const layer = (size: number, inChannels: number, outChannels: number): Conv2dAttributes => ({
  batch: 128,
  height: size,
  width: size,
  inChannels,
  outChannels,
  kernelHeight: 3,
  kernelWidth: 3,
  stride: [1, 1],
  padding: [1, 1],
  dilation: [1, 1],
});

await copy(2 ** 22);
for (const size of [512, 1024])
  for (const dtype of ["float32", "float16", "bfloat16"] as const)
    await product({ m: size, n: size, k: size }, dtype);
for (const dtype of ["float32", "float16"] as const) {
  await product({ m: 512, n: 512, k: 512, transB: true }, dtype);
  await product({ m: 512, n: 512, k: 512, transA: true }, dtype);
  await product({ m: 128, n: 10, k: 576, transB: true }, dtype);
  await product({ m: 128, n: 576, k: 10 }, dtype);
  await product({ m: 10, n: 576, k: 128, transA: true }, dtype);
  await convolution(layer(28, 1, 16), dtype);
  await convolution(layer(14, 16, 32), dtype);
  await convolution(layer(7, 32, 64), dtype);
}
await convolution(layer(14, 16, 32), "float16", "float16");
await convolution(layer(7, 32, 64), "bfloat16", "bfloat16");
device.destroy();
