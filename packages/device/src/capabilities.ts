import { BufferUsage, mapModeRead } from "./flags.js";
import {
  type AdapterInfo,
  type Hardware,
  hardwareOf,
  pinnableSizes,
  reportedMatrices,
} from "./hardware.js";
import { matrixProbe, matrixProbeSums } from "./matrix-probe.js";
import { paced } from "./paced.js";

/** "native": half precision in WGSL (`shader-f16`). "packed": two halves in a u32, nothing optional needed. */
export type Tier = "native" | "packed";

/** The adapter's description of itself; empty strings where it has none. */
export interface AdapterDescription {
  readonly vendor: string;
  readonly architecture: string;
  readonly device: string;
  readonly description: string;
  /** True for software adapters. */
  readonly isFallback: boolean;
}

/** The abilities of a device, tested on the device itself. */
export interface Capabilities {
  readonly tier: Tier;
  /** The measured size of all subgroups, or where it varies one that programs can pin; 0 without subgroups, or where neither is known. */
  readonly subgroupSize: number;
  readonly hasTimestamps: boolean;
  /** The hardware by which kernels choose their programs. */
  readonly hardware: Hardware;
  readonly adapter: AdapterDescription;
  readonly limits: GPUSupportedLimits;
  /** Features of the device, experimental ones included. */
  readonly features: ReadonlySet<string>;
}

/** Options of {@link probeCapabilities}. */
export interface ProbeOptions {
  readonly tier?: Tier | undefined;
  /** What the adapter says of itself. Default: what the device says, which in Node leaves out matrices. */
  readonly adapterInfo?: GPUAdapterInfo | undefined;
  /** Default: that of the adapter. */
  readonly hardwareClass?: string | undefined;
}

/**
 * Compiles and runs tiny programs on a device to test its abilities instead of trusting its claims. Takes a few
 * milliseconds.
 */
export async function probeCapabilities(
  gpu: GPUDevice,
  options: ProbeOptions,
): Promise<Capabilities> {
  const features = new Set<string>(gpu.features);
  const { tier = "native" } = options;
  if (tier !== "native" && tier !== "packed")
    throw new TypeError(`there is no tier "${tier}": ask for "native" or "packed", or for none`);
  const wantsNative = options.tier !== "packed" && features.has("shader-f16");
  const info: AdapterInfo = options.adapterInfo ?? gpu.adapterInfo ?? {};
  const [hasHalf, subgroups, matrices] = await Promise.all([
    wantsNative ? probeHalf(gpu) : false,
    features.has("subgroups") ? probeSubgroups(gpu, info, features) : noSubgroups,
    probeMatrices(gpu, info, features),
  ]);
  if (options.tier === "native" && !hasHalf)
    throw new TypeError(
      'tier "native" needs a device with a working "shader-f16" feature: request the device with it, or use tier "packed"',
    );
  return {
    tier: hasHalf ? "native" : "packed",
    subgroupSize: subgroups.size,
    hasTimestamps: features.has("timestamp-query"),
    hardware: {
      ...hardwareOf(info, gpu.limits),
      ...matrices,
      ...(subgroups.isPinned && { pinsSubgroups: true }),
      ...(options.hardwareClass !== undefined && { class: options.hardwareClass }),
    },
    adapter: describe(info),
    limits: gpu.limits,
    features,
  };
}

function describe(info: AdapterInfo): AdapterDescription {
  const { vendor = "", architecture = "", device = "", description = "" } = info;
  return {
    vendor,
    architecture,
    device,
    description,
    isFallback: info.isFallbackAdapter === true,
  };
}

const halfProbe = /* wgsl */ `enable f16;
@group(0) @binding(0) var<storage, read_write> out: array<vec2<f16>>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
  let x = f16(id.x);
  out[id.x] = vec2<f16>(x * x + 0.5h, -x);
}`;

/** Whether f16 arithmetic and storage give the correct bits. */
async function probeHalf(gpu: GPUDevice): Promise<boolean> {
  const found = await runProbe(gpu, halfProbe, 4, 1);
  // (i² + 0.5, −i) for i = 0…3 as two float16 codes each.
  const expected = [0x8000_3800, 0xbc00_3e00, 0xc000_4480, 0xc200_48c0];
  // -0 may come out as +0 where the compiler negates by subtraction.
  return found !== undefined && expected.every((code, i) => i === 0 || found[i] === code);
}

/** The matrices whose products are right, by the first size of subgroups that multiplies any right. */
async function probeMatrices(
  gpu: GPUDevice,
  info: AdapterInfo,
  features: ReadonlySet<string>,
): Promise<Pick<Hardware, "matrixSubgroupSize" | "subgroupMatrices">> {
  const reported = reportedMatrices(info, features);
  for (const size of reported.length > 0 ? pinnableSizes(info, features) : []) {
    const right = await Promise.all(
      reported.map(async (matrix) => {
        const found = await runProbe(gpu, matrixProbe(matrix, size), matrix.m * matrix.n, 1);
        const sums = new Uint32Array(matrixProbeSums(matrix).buffer);
        return found !== undefined && sums.every((bits, i) => found[i] === bits);
      }),
    );
    const subgroupMatrices = reported.filter((_, i) => right[i]);
    if (subgroupMatrices.length > 0) return { matrixSubgroupSize: size, subgroupMatrices };
  }
  return { matrixSubgroupSize: 0, subgroupMatrices: [] };
}

/** Shapes that a driver might run with subgroups of different sizes. */
const shapes = [
  [32, 1],
  [64, 1],
  [8, 8],
  [256, 1],
] as const;
const groups = 4;

/** The size of subgroups on which programs may count, and whether they have to pin it. */
interface Subgroups {
  readonly size: number;
  readonly isPinned: boolean;
}
const noSubgroups: Subgroups = { size: 0, isPinned: false };

/** The size that all subgroups have, or else the first that can be pinned. */
async function probeSubgroups(
  gpu: GPUDevice,
  info: AdapterInfo,
  features: ReadonlySet<string>,
): Promise<Subgroups> {
  const { subgroupMinSize: least, subgroupMaxSize: most } = info;
  if (least === undefined || least === most) {
    const size = await commonSize(gpu);
    if (size > 0 && (least === undefined || size === least)) return { size, isPinned: false };
  }
  for (const size of pinnableSizes(info, features))
    if ((await commonSize(gpu, size)) === size) return { size, isPinned: true };
  return noSubgroups;
}

/** The size of every subgroup in a few workgroups of several shapes, or 0 when two differ. */
async function commonSize(gpu: GPUDevice, pinned?: number): Promise<number> {
  const runs = await Promise.all(
    shapes
      // The size of a workgroup along x has to be a multiple of a pinned size.
      .filter(([x]) => pinned === undefined || x % pinned === 0)
      .map(([x, y]) => runProbe(gpu, subgroupProbe(x, y, pinned), x * y * groups, groups)),
  );
  const sizes = new Set(runs.flatMap((run) => (run ? [...run] : [0])));
  const [size = 0] = sizes;
  return sizes.size === 1 ? size : 0;
}

const subgroupProbe = (
  x: number,
  y: number,
  pinned: number | undefined,
): string => /* wgsl */ `enable subgroups;
${pinned === undefined ? "" : "enable subgroup_size_control;"}
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(${x}, ${y})${pinned === undefined ? "" : ` @subgroup_size(${pinned})`} fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) local: u32,
  @builtin(subgroup_size) size: u32,
) { out[group.x * ${x * y}u + local] = size; }`;

/** The words that a program wrote, or undefined when the device refuses to compile or run it. */
async function runProbe(
  gpu: GPUDevice,
  code: string,
  words: number,
  workgroups: number,
): Promise<Uint32Array | undefined> {
  const size = words * 4;
  gpu.pushErrorScope("validation");
  const out = gpu.createBuffer({ size, usage: BufferUsage.storage | BufferUsage.copySource });
  const staging = gpu.createBuffer({ size, usage: BufferUsage.mapRead | BufferUsage.copyTarget });
  const module = gpu.createShaderModule({ label: "probe", code });
  const pipeline = gpu.createComputePipeline({ layout: "auto", compute: { module } });
  const commands = gpu.createCommandEncoder();
  const pass = commands.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(
    0,
    gpu.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [{ binding: 0, resource: { buffer: out } }],
    }),
  );
  pass.dispatchWorkgroups(workgroups);
  pass.end();
  commands.copyBufferToBuffer(out, 0, staging, 0, size);
  gpu.queue.submit([commands.finish()]);
  const error = await paced(gpu.popErrorScope());
  try {
    if (error) return undefined;
    await paced(staging.mapAsync(mapModeRead));
    return new Uint32Array(staging.getMappedRange().slice(0));
  } finally {
    out.destroy();
    staging.destroy();
  }
}
