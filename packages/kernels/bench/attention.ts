/**
 * Compares fused attention with attention composed of matrix products and a kernel for its probabilities, and with the peak
 * rates of the machine, all in one run: `npm run bench:attention`. The two alternate; a ratio is the median of their ratios by
 * round.
 */
import type { Binding, Kernel, LaunchTarget } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { bytesFor } from "@halfstep/formats/dtypes";
import {
  type AttentionAttributes,
  attention,
  attentionKeyValueGradient,
  attentionProbabilities,
  attentionProbabilitiesBackward,
  attentionQueryGradient,
  attentionStatistics,
  defineKernel,
  dropout,
  elementwise,
  identity,
  matmul,
} from "../src/index.js";

type Storage = "float32" | "float16" | "bfloat16";
type B = Binding<GPUBuffer>;
type Target = LaunchTarget<GPUBuffer>;
type Launches = (target: Target) => void;

const rounds = 15;
const wanted = process.argv[2] ?? "";
const device = await requestDevice();
const { adapter, tier, subgroupSize } = device.capabilities;
const isSoftware = /llvmpipe|swiftshader/i.test(adapter.description);
console.log(
  `${adapter.description}; tier ${tier}, subgroups of ${subgroupSize}; ${rounds} rounds\n`,
);

const sleep = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

const guesses = new Map<Launches, number>();

/** Milliseconds from submission to completion. */
async function run(launches: Launches): Promise<number> {
  const scratch: GPUBuffer[] = [];
  const encoder = device.encoder();
  launches({
    launch: (launch) => encoder.launch(launch),
    allocate(bytes) {
      scratch.push(encoder.allocate(bytes));
      return scratch.at(-1) as GPUBuffer;
    },
  });
  const start = performance.now();
  encoder.submit();
  // A pending promise polls and takes a core from a software adapter.
  if (isSoftware) sleep((guesses.get(launches) ?? 0) * 0.85);
  await device.gpu.queue.onSubmittedWorkDone();
  const ms = performance.now() - start;
  guesses.set(launches, Math.min(ms, guesses.get(launches) ?? ms));
  for (const buffer of scratch) device.release(buffer);
  return ms;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;

/** Milliseconds of several variants by round. The variants alternate, after one round to compile and one to warm up. */
async function inTurns(things: readonly Launches[]): Promise<readonly (readonly number[])[]> {
  for (let i = 0; i < 2; i++) for (const thing of things) await run(thing);
  const times: number[][] = things.map(() => []);
  for (let i = 0; i < rounds; i++)
    for (const [t, thing] of things.entries()) times[t]?.push(await run(thing));
  return times;
}

const tensor = (length: number, dtype: Storage): Binding<GPUBuffer> => {
  const buffer = device.allocate(Math.max(16, bytesFor(dtype, length)));
  const values = Float32Array.from({ length }, (_, i) => ((i * 7) % 13) / 13 - 0.5);
  // Sixteen-bit codes of numbers about a half, in either format.
  const codes = () => Uint16Array.from({ length }, (_, i) => 0x3800 + ((i * 7) % 13) * 16);
  device.write(buffer, 0, dtype === "float32" ? values : codes());
  return { buffer, offset: 0, length, dtype };
};

/** Multiply-adds in registers: 64 sums of four a lane, so that none waits for another. */
const fmaKernel: Kernel = defineKernel({
  name: "fmaRate",
  bindings: [{ name: "out", access: "write", dtypes: ["float32"] }],
  scalars: [{ name: "steps", type: "u32" }],
  body: () => {
    const sums = Array.from({ length: 8 }, (_, i) => i);
    return `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  let a = vec4f(f32(id.x & 1u) + 0.25);
  let b = vec4f(f32(s.steps) * 1e-9);
${sums.map((i) => `  var x${i} = vec4f(${i}.0);\n`).join("")}  for (var step = 0u; step < s.steps; step++) {
${sums.map((i) => `    x${i} = fma(x${i}, a, b);\n`).join("")}  }
  store_out(id.x, ${sums.map((i) => `x${i}`).join(" + ")});
}`;
  },
  workgroups: (_, [length = 0]) => [length / 256, 1, 1],
  reference() {},
});

async function limits(): Promise<{ flops: number; bytes: number }> {
  const lanes = isSoftware ? 2 ** 12 : 2 ** 19;
  const steps = isSoftware ? 4096 : 8192;
  const out = tensor(lanes * 4, "float32");
  const length = isSoftware ? 2 ** 22 : 2 ** 26;
  const from = { ...tensor(length, "float32"), shape: [length] };
  const to = { ...tensor(length, "float32"), shape: [length] };
  const [fma, copy] = await inTurns([
    (target) => target.launch({ kernel: fmaKernel, bindings: [out], scalars: { steps } }),
    (target) => target.launch(elementwise(identity, [from], to)),
  ]);
  const rates = {
    flops: (lanes * 64 * steps) / Math.min(...(fma as number[])),
    bytes: (length * 8) / Math.min(...(copy as number[])),
  };
  console.log(
    `limits: ${(rates.flops / 1e6).toFixed(0)} GFLOP/s multiply-add in float32, ${(rates.bytes / 1e6).toFixed(1)} GB/s copied\n`,
  );
  for (const { buffer } of [out, from, to]) device.release(buffer);
  return rates;
}

interface Case {
  readonly entries: number;
  readonly length: number;
  readonly size: number;
  readonly dtype: Storage;
  readonly isCausal?: boolean;
  readonly p?: number;
}

const limit = await limits();
console.log(
  "| heads × length × size | pass | composed / fused | fused, GFLOP/s | of the limit | activations, composed / fused |\n|---|---|---|---|---|---|",
);

async function compare(test: Case): Promise<void> {
  const { entries, length, size, dtype, isCausal = false, p } = test;
  const name = `${entries} × ${length} × ${size} ${dtype}${isCausal ? ", causal" : ""}${p ? ", dropout" : ""}`;
  if (!name.includes(wanted)) return;
  const count = entries * length * size;
  const rows = entries * length;
  const [query, key, value, out, outGradient, queryGradient, keyGradient, valueGradient] =
    Array.from({ length: 8 }, () => tensor(count, dtype)) as [B, B, B, B, B, B, B, B];
  const normalizers = tensor(rows * 2, "float32");
  const statistics = tensor(rows * 4, "float32");
  const scores = tensor(rows * length, "float32");
  const [probabilities, change] = [tensor(rows * length, dtype), tensor(rows * length, dtype)];
  const scale = 1 / Math.sqrt(size);
  const attributes: AttentionAttributes = {
    entries,
    queries: length,
    keys: length,
    size,
    width: size,
    scale,
    isCausal,
    ...(p && { dropout: { p, source: { seed: 1, block: 0, stream: 0 } } }),
  };
  const fused = { query, key, value, out, normalizers, outGradient, statistics };
  const shape = { batch: entries, m: length, n: length, k: size };
  const back = { batch: entries, m: length, n: size, k: length };
  const perRow = { rows, columns: length, scale, causalRows: isCausal ? length : undefined };
  const forwards: readonly Launches[] = [
    (target) => attention(target, fused, attributes),
    (target) => {
      matmul(target, { a: query, b: key, out: scores }, { ...shape, transB: true });
      target.launch(attentionProbabilities({ scores, probabilities }, perRow));
      if (attributes.dropout)
        target.launch(
          dropout({ input: probabilities, out: change }, attributes.dropout.source, p ?? 0),
        );
      matmul(target, { a: attributes.dropout ? change : probabilities, b: value, out }, back);
    },
  ];
  const backwards: readonly Launches[] = [
    (target) => {
      target.launch(attentionStatistics(fused, attributes));
      attentionQueryGradient(target, { ...fused, queryGradient }, attributes);
      attentionKeyValueGradient(target, { ...fused, keyGradient, valueGradient }, attributes);
    },
    (target) => {
      matmul(
        target,
        { a: probabilities, b: outGradient, out: valueGradient },
        { ...back, transA: true },
      );
      matmul(target, { a: outGradient, b: value, out: change }, { ...shape, transB: true });
      const operands = { probabilities, gradient: change, scoresGradient: scores };
      target.launch(attentionProbabilitiesBackward(operands, perRow));
      const weights = { ...scores, ...(dtype !== "float32" && { rounding: dtype }) };
      matmul(target, { a: weights, b: key, out: queryGradient }, back);
      matmul(target, { a: weights, b: query, out: keyGradient }, { ...back, transA: true });
    },
  ];
  const bytes = bytesFor(dtype, count);
  const kept = `${(bytesFor(dtype, rows * length + 4 * count) / 1e6).toFixed(1)} / ${((4 * bytes + rows * 4) / 1e6).toFixed(1)} MB`;
  // Backward: five products, of which the scores and their gradients are computed twice.
  for (const [pass, launches, products, moved] of [
    ["forward", forwards, 2, 4],
    ["backward", backwards, 5, 8],
  ] as const) {
    if (p && pass === "backward") continue;
    const [own, composed] = (await inTurns(launches)) as [number[], number[]];
    const ratio = median(own.map((ms, i) => (composed[i] as number) / ms));
    const flops = (2 * products * count * length) / (isCausal ? 2 : 1);
    const least = Math.max(flops / limit.flops, (moved * bytes) / limit.bytes);
    console.log(
      `| ${name} | ${pass} | ${ratio.toFixed(2)} | ${(flops / median(own) / 1e6).toFixed(1)} | ${((100 * least) / median(own)).toFixed(0)} % | ${pass === "forward" ? kept : ""} |`,
    );
  }
  const all = [query, key, value, out, outGradient, queryGradient, keyGradient, valueGradient];
  for (const { buffer } of [...all, normalizers, statistics, scores, probabilities, change])
    device.release(buffer);
}

for (const dtype of ["float32", "float16", "bfloat16"] as const)
  await compare({ entries: 8, length: 512, size: 64, dtype });
for (const dtype of ["float32", "float16"] as const) {
  await compare({ entries: 8, length: 512, size: 64, dtype, isCausal: true });
  await compare({ entries: 8, length: 512, size: 32, dtype });
  await compare({ entries: 4, length: 512, size: 128, dtype });
}
await compare({ entries: 32, length: 128, size: 64, dtype: "float16" });
await compare({ entries: 2, length: 2048, size: 64, dtype: "float16", isCausal: true });
await compare({ entries: 8, length: 512, size: 64, dtype: "float16", p: 0.1 });
device.destroy();
