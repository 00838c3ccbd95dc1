/// <reference types="node" />
import { availableParallelism, totalmem } from "node:os";
import { dawnNotLoaded } from "./dawn-not-loaded.js";
import type { Device } from "./device.js";
import { NoAdapterError } from "./errors.js";
import { deviceOptions, requireOptions } from "./options.js";
import { type DeviceOptions, openDevice, openGpu } from "./request.js";

/** Options of requesting a device in Node. */
export interface NodeDeviceOptions extends DeviceOptions {
  /** Part of an adapter's name in any case, or its index in `listAdapters()`. Default: `HALFSTEP_ADAPTER`, or else Dawn's choice. */
  readonly adapter?: string | number;
}

/**
 * Requests a device of Dawn in Node. Throws a {@link NoAdapterError} when there is none, or none by that name. On a software
 * adapter, which uses the machine's memory, the default memory budget is three quarters of the process's limit.
 */
export async function requestDevice(options: NodeDeviceOptions = {}): Promise<Device> {
  requireOptions("requestDevice(options)", options, [...deviceOptions, "adapter"]);
  const { adapter: named, ...others } = options;
  const wish = named ?? (process.env.HALFSTEP_ADAPTER || undefined);
  const adapter = await requestAdapter(wish);
  const memoryBudget =
    options.memoryBudget ??
    (adapter.info.isFallbackAdapter ? Math.floor(0.75 * usableMemory()) : undefined);
  const compilers = {
    most: Math.min(availableParallelism() - 1, mostCompilers),
    open: async () => openGpu(await requestAdapter(wish), options),
  };
  return openDevice(adapter, {
    compilers,
    ...others,
    ...(memoryBudget !== undefined && { memoryBudget }),
  });
}

/** Further devices that compile programs for one: more would use memory and seldom have work. */
const mostCompilers = 3;

/** A GPUDevice that computes nothing and has every feature of Dawn. It compiles programs that no local adapter can run. */
export async function requestNullDevice(): Promise<GPUDevice> {
  const gpu = await createGpu("backend=null");
  const adapter = await take(gpu);
  return adapter.requestDevice({
    requiredFeatures: [
      "shader-f16",
      "subgroups",
      "subgroup-size-control",
      "chromium-experimental-subgroup-matrix",
    ] as GPUFeatureName[],
    requiredLimits: {
      maxComputeInvocationsPerWorkgroup: adapter.limits.maxComputeInvocationsPerWorkgroup,
      maxComputeWorkgroupStorageSize: adapter.limits.maxComputeWorkgroupStorageSize,
    },
  });
}

/** The names of the adapters that Dawn can use on this machine, in its order. */
export async function listAdapters(): Promise<readonly string[]> {
  // Dawn lists its adapters only in the error for an adapter that does not exist.
  const gpu = await createGpu("adapter=\u0001");
  try {
    await gpu.requestAdapter();
    return [];
  } catch (error) {
    return [...String(error).matchAll(/name: '(.*)'$/gm)].map(([, name]) => name as string);
  }
}

async function requestAdapter(wish: string | number | undefined): Promise<GPUAdapter> {
  if (wish === undefined) return take(await createGpu());
  const names = await listAdapters();
  const index = indexOf(wish, names);
  const name = names[index];
  if (name === undefined)
    throw new NoAdapterError(
      names.length === 0
        ? noAdapter
        : `no adapter matches ${JSON.stringify(wish)}: choose one of ${names.map((n, i) => `${i} "${n}"`).join(", ")}`,
    );
  // Dawn takes the first adapter whose name contains the given one.
  if (names.findIndex((n) => n.includes(name)) !== index)
    throw new NoAdapterError(
      `adapter ${index} "${name}" cannot be told from an earlier one by its name: hide the others, for example with VK_LOADER_DEVICE_SELECT or MESA_VK_DEVICE_SELECT`,
    );
  return take(await createGpu(`adapter=${name}`));
}

// "1" on a command line is an index, but "4090" is part of a name.
function indexOf(wish: string | number, names: readonly string[]): number {
  if (typeof wish === "number") return wish;
  if (/^\d{1,2}$/.test(wish)) return Number(wish);
  return names.findIndex((name) => name.toLowerCase().includes(wish.toLowerCase()));
}

async function take(gpu: GPU): Promise<GPUAdapter> {
  let cause: unknown;
  try {
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    if (adapter) return adapter;
  } catch (error) {
    cause = error;
  }
  throw new NoAdapterError(noAdapter, { cause });
}

const noAdapter =
  "no GPU adapter was found. On Debian or Ubuntu `npm start` and `npm test` install Mesa's software driver, or without root unpack it for you; by hand: " +
  "apt-get install mesa-vulkan-drivers (Mesa 23 or newer: on Debian 12 add -t bookworm-backports). With a GPU install its Vulkan driver.";

const pinned = Symbol.for("@halfstep/device/dawn");

/**
 * The only place that creates Dawn's GPU objects, one for each choice of adapter in a process. They are never released: the process
 * crashes when one is garbage-collected.
 */
async function createGpu(...choice: readonly string[]): Promise<GPU> {
  const holder = globalThis as { [pinned]?: Map<string, GPU> };
  holder[pinned] ??= new Map();
  const kept = holder[pinned];
  const key = choice.join();
  const { create, globals } = await loadDawn();
  process.env.LP_NUM_THREADS ??= String(softwareThreads());
  for (const [name, value] of Object.entries(globals))
    if (!(name in globalThis))
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  let gpu = kept.get(key);
  if (!gpu) {
    gpu = create([
      // Without the second toggle NVIDIA's Vulkan driver does not offer shader-f16.
      "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia",
      // Dawn hides details of a time by counting it in steps of 65 µs, which is longer than many kernels run.
      "disable-dawn-features=timestamp_quantization",
      ...choice,
    ]);
    kept.set(key, gpu);
  }
  return gpu;
}

/**
 * Threads of Mesa's software driver, which reads `LP_NUM_THREADS` when it is loaded. It divides each dispatch evenly, by default
 * into one part for each core. The thread that shares its core with the host is then late, and the others wait (decision 63).
 */
const softwareThreads = (): number => Math.min(2 * availableParallelism(), 32);

async function loadDawn(): Promise<{ create(options: string[]): GPU; globals: object }> {
  try {
    return await import("webgpu");
  } catch (cause) {
    throw dawnNotLoaded(cause);
  }
}

function usableMemory(): number {
  // Zero, or more than the machine's memory, means "no limit".
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
