/**
 * Speed of matrix products and convolutions in GFLOP/s, with the bandwidth of a copy in the same run: `npm run bench`.
 * Storages alternate, and each line has its speed relative to float32. An argument selects lines by a part of their name.
 */
import type { Binding } from "@halfstep/device";
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
import { type Launches, measure } from "./measure.js";

type Storage = "float32" | "float16" | "bfloat16";

const repeats = 9;
const storages: readonly Storage[] = ["float32", "float16", "bfloat16"];
const wanted = process.argv[2] ?? "";
const device = await requestDevice();
const { adapter, tier, subgroupSize, hardware } = device.capabilities;
const unit = hardware.class === "software" ? "GFLOP/s a core" : "GFLOP/s";
console.log(
  `${adapter.description}; tier ${tier}, subgroups of ${subgroupSize}; best of ${repeats}`,
);

const tensor = (length: number, dtype: Storage): Binding<GPUBuffer> => {
  const buffer = device.allocate(length * 4);
  const values = Float32Array.from({ length }, (_, i) => ((i * 7) % 13) / 13 - 0.5);
  device.write(buffer, 0, dtype === "float32" ? values : new Uint16Array(length));
  return { buffer, offset: 0, length, dtype };
};

async function report(
  name: string,
  flops: number,
  variants: Readonly<Record<string, Launches>>,
): Promise<void> {
  if (!name.includes(wanted)) return;
  const times = await measure(device, variants, repeats);
  const base = Object.values(times)[0]?.best ?? 0;
  for (const [variant, { best, first }] of Object.entries(times)) {
    const rate = (flops / best / 1e6).toFixed(1).padStart(8);
    const ratio = `×${(base / best).toFixed(2)}`;
    console.log(
      `${`${name} ${variant}`.padEnd(54)}${rate} ${unit} ${ratio}, ${best.toFixed(2)} ms, first ${first.toFixed(0)} ms`,
    );
  }
}

async function product(shape: MatmulAttributes): Promise<void> {
  const { m, n, k } = shape;
  const buffers: GPUBuffer[] = [];
  const variants: Record<string, Launches> = {};
  for (const dtype of storages) {
    const operands = {
      a: tensor(m * k, dtype),
      b: tensor(k * n, dtype),
      out: tensor(m * n, dtype),
    };
    buffers.push(...Object.values(operands).map(({ buffer }) => buffer));
    variants[dtype] = (target) => matmul(target, operands, shape);
  }
  const letters = `${shape.transA ? "t" : "n"}${shape.transB ? "t" : "n"}`;
  await report(`matmul ${letters} ${m}×${n}×${k}`, 2 * m * n * k, variants);
  for (const buffer of buffers) device.release(buffer);
}

async function convolution(attributes: Conv2dAttributes): Promise<void> {
  const { batch, height, width, inChannels, outChannels, kernelHeight, kernelWidth } = attributes;
  const [outHeight, outWidth] = conv2dOutputSize(attributes);
  const pixels = batch * outHeight * outWidth;
  const depth = kernelHeight * kernelWidth * inChannels;
  const buffers: GPUBuffer[] = [];
  const variants: Record<
    "forward" | "input gradient" | "weight gradient",
    Record<string, Launches>
  > = { forward: {}, "input gradient": {}, "weight gradient": {} };
  for (const dtype of storages) {
    const input = tensor(batch * height * width * inChannels, dtype);
    // A master weight, which a planned step rounds while it loads it.
    const weight = {
      ...tensor(depth * outChannels, "float32"),
      ...(dtype !== "float32" && { rounding: dtype }),
    };
    const out = tensor(pixels * outChannels, dtype);
    const gradient = tensor(depth * outChannels, "float32");
    buffers.push(...[input, weight, out, gradient].map(({ buffer }) => buffer));
    variants.forward[dtype] = (target) => conv2d(target, { input, weight, out }, attributes);
    variants["input gradient"][dtype] = (target) =>
      conv2dInputGradient(target, { outGradient: out, weight, inputGradient: input }, attributes);
    variants["weight gradient"][dtype] = (target) =>
      conv2dWeightGradient(
        target,
        { input, outGradient: out, weightGradient: gradient },
        attributes,
      );
  }
  const name = `conv ${inChannels}→${outChannels} at ${height}×${width}`;
  for (const [pass, launches] of Object.entries(variants))
    await report(`${name} ${pass}`, 2 * pixels * depth * outChannels, launches);
  for (const buffer of buffers) device.release(buffer);
}

async function copy(length: number): Promise<void> {
  const x = { ...tensor(length, "float32"), shape: [length] };
  const y = { ...tensor(length, "float32"), shape: [length] };
  const { copied } = await measure(device, {
    copied: (target) => target.launch(elementwise(identity, [x], y)),
  });
  const rate = ((length * 8) / copied.best / 1e6).toFixed(1);
  const per = hardware.class === "software" ? " a core" : "";
  console.log(`copy of ${length * 4} bytes: ${rate} GB/s read and written${per}`);
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
for (const size of [512, 1024]) await product({ m: size, n: size, k: size });
await product({ m: 512, n: 512, k: 512, transB: true });
await product({ m: 512, n: 512, k: 512, transA: true });
await product({ m: 128, n: 10, k: 576, transB: true });
await product({ m: 128, n: 576, k: 10 });
await product({ m: 10, n: 576, k: 128, transA: true });
await convolution(layer(28, 1, 16));
await convolution(layer(14, 16, 32));
await convolution(layer(7, 32, 64));
device.destroy();
