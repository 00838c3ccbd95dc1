/**
 * Compares the time of an optimizer's step with copying as many bytes as it reads and writes, and with one launch for each
 * tensor, in the same run: `npm run bench`. It prints ratios, because machines differ and are shared.
 */
import type { Binding } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { deviceTarget, elementwise, identity, type ResidentTarget } from "@halfstep/kernels";
import {
  Adafactor,
  AdamW,
  type FlatTensors,
  flatTensors,
  LAMB,
  Lion,
  type OptimizerOptions,
  SGD,
} from "../src/index.js";

const tensors = 200;
const elements = Number(process.argv[2] ?? 2 ** 20);
const repeats = 31;

const device = await requestDevice();
const { adapter, tier } = device.capabilities;
const isSoftware = /llvmpipe|swiftshader/i.test(adapter.description);
const target = deviceTarget(device);
console.log(
  `${adapter.description}; tier ${tier}; ${elements} parameters in ${tensors} tensors; medians of ${repeats} rounds`,
);

/**
 * Milliseconds of each, in alternating rounds, so that other load affects all alike. A pending promise polls and would take a
 * core from a software adapter, so the host sleeps meanwhile.
 */
async function rounds(...works: readonly (() => void)[]): Promise<readonly (readonly number[])[]> {
  const best = works.map(() => Number.POSITIVE_INFINITY);
  const taken: number[][] = [];
  for (let i = 0; i < repeats + 2; i++) {
    const round: number[] = [];
    for (const [k, work] of works.entries()) {
      work();
      const start = performance.now();
      target.submit();
      if (isSoftware && i > 1) sleep((best[k] as number) * 0.9);
      await device.gpu.queue.onSubmittedWorkDone();
      const ms = performance.now() - start;
      if (i > 0) best[k] = Math.min(best[k] as number, ms);
      round.push(ms);
    }
    if (i > 1) taken.push(round);
  }
  return taken;
}

/** The median over rounds of the time of one over that of another. */
function ratio(taken: readonly (readonly number[])[], of: number, to: number): string {
  const ratios = taken.map((round) => (round[of] as number) / (round[to] as number));
  return (ratios.sort((a, b) => a - b)[ratios.length >> 1] as number).toFixed(2);
}

const sleep = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

const floats = (length: number): Binding<GPUBuffer> => ({
  buffer: target.allocate(length * 4),
  offset: 0,
  length,
  dtype: "float32",
});

/** Like `target`, with every launch over a flat buffer divided into one for each tensor. */
const perTensor: ResidentTarget<GPUBuffer> = {
  ...target,
  launch(launch) {
    const { first, end, ...scalars } = launch.scalars;
    if (first === undefined || end === undefined) return target.launch(launch);
    const step = (end - first) / tensors;
    for (let i = 0; i < tensors; i++)
      target.launch({
        ...launch,
        scalars: { ...scalars, first: first + i * step, end: first + (i + 1) * step },
      });
  },
};

interface Line {
  readonly title: string;
  readonly dtype: FlatTensors<GPUBuffer>["dtype"];
  /** False where launches are not elementwise, and dividing them would change the algorithm. */
  readonly isCut: boolean;
  /** Bytes that a step reads and writes for each parameter. */
  readonly bytes: number;
  make(target: ResidentTarget<GPUBuffer>, flat: FlatTensors<GPUBuffer>): { step(): void };
}

const line = (
  title: string,
  dtype: Line["dtype"],
  bytes: number,
  Class: typeof AdamW | typeof SGD,
  options: OptimizerOptions & { readonly momentum?: number },
): Line => ({
  title,
  dtype,
  bytes,
  isCut: options.moments !== "int8",
  make: (on, flat) => new Class(on, flat, options),
});

const lines: readonly Line[] = [
  line("SGD with momentum, float32", "float32", 20, SGD, { momentum: 0.9 }),
  line("AdamW, float32", "float32", 28, AdamW, {}),
  line("AdamW, float16 with float32 masters", "float16", 30, AdamW, { storage: "master" }),
  line("AdamW, bfloat16 and remainder", "bfloat16", 28, AdamW, { storage: "remainder" }),
  line("AdamW, bfloat16 compensated", "bfloat16", 28, AdamW, { storage: "kahan" }),
  line("AdamW, bfloat16 stochastic", "bfloat16", 24, AdamW, { storage: "stochastic" }),
  line("AdamW, float32, bfloat16 moments", "float32", 20, AdamW, { moments: "bfloat16" }),
  line("AdamW, float32, 8-bit moments", "float32", 16, AdamW, { moments: "int8" }),
  {
    title: "Lion, float32",
    dtype: "float32",
    bytes: 20,
    isCut: true,
    make: (on, flat) => new Lion(on, flat),
  },
  {
    title: "LAMB, float32, with its clipping",
    dtype: "float32",
    bytes: 4 + 24 + 16,
    isCut: false,
    make: (on, flat) => new LAMB(on, flat),
  },
  {
    title: "Adafactor, float32",
    dtype: "float32",
    bytes: 8 + 8 + 12,
    isCut: false,
    make: (on, flat) => new Adafactor(on, flat),
  },
];

const table = [
  "| optimizer | bytes a parameter | step / copy of its bytes | one launch a tensor / fused |",
  "|---|---|---|---|",
];
for (const { title, dtype, bytes, isCut, make } of lines) {
  const shapes = Object.fromEntries(
    Array.from({ length: tensors }, (_, i) => [
      `w${i}`,
      [64, Math.ceil(elements / tensors / 8192) * 128],
    ]),
  );
  const flat = flatTensors(target, shapes, { dtype });
  const own = { buffer: flat.gradients, offset: 0, length: 1024, dtype: "float32" } as const;
  target.write(
    own,
    Float32Array.from({ length: 1024 }, (_, i) => Math.sin(i)),
  );
  const length = 64 * Math.ceil(elements / tensors / 8192) * 128 * tensors;
  const copied = Math.round((bytes * length) / 8);
  const [from, to] = [floats(copied), floats(copied)];
  const shape = [copied];
  const copy = (): void =>
    target.launch(elementwise(identity, [{ ...from, shape }], { ...to, shape }));
  const fused = make(target, flat);
  const apart = make(perTensor, flatTensors(target, shapes, { dtype }));
  const taken = await rounds(copy, () => fused.step(), ...(isCut ? [() => apart.step()] : []));
  const against = isCut ? ratio(taken, 2, 1) : "";
  table.push(`| ${title} | ${bytes} | ${ratio(taken, 1, 0)} | ${against} |`);
  for (const { buffer } of [from, to]) device.release(buffer);
}
console.log(table.join("\n"));
process.exit(0);
