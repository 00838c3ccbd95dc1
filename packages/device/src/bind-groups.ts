import { bytesFor } from "@halfstep/formats/dtypes";
import { checkSharing } from "./check-launch.js";
import type { Counters } from "./counters.js";
import { isNode } from "./environment.js";
import { BufferUsage } from "./flags.js";
import type { Binding, Kernel } from "./launch.js";
import type { CompiledKernel } from "./pipeline-cache.js";

/** A range of a uniform buffer that holds the scalars of one launch. */
export interface UniformSlot {
  readonly buffer: GPUBuffer;
  readonly offset: number;
}

/** Number of bind groups that are kept. One takes 13 to 24 µs to create and about a KiB of memory. */
const capacity = 8192;

/**
 * The size of a bind group that Node's garbage collector is told, in bytes. Each object is small on the heap, so that the collector
 * runs only after megabytes of them. But each has memory of the driver, on llvmpipe a mapping of its own, and Linux limits a process
 * to 65,530 mappings. V8 collects when 64 MiB outside of its heap have been added.
 */
const weight = 8192;

/** Descriptors of a layout that Dawn allocates together: the bind groups that use them share one such size. */
const descriptorsAtOnce = 512;

/**
 * Dawn reuses the memory of a collected bind group only after a later submit is done. An empty submit follows after this many new bind
 * groups, for programs that make them without submitting.
 */
const groupsBetweenSubmits = 1024;

interface Entry {
  readonly group: GPUBindGroup;
  readonly buffers: readonly GPUBuffer[];
  readonly weight: ArrayBuffer | undefined;
}

/** Bind groups of a layout that the driver allocates together, and their common size. */
interface Batch {
  readonly weight: ArrayBuffer;
  /** The number of its bind groups that remain to be made. */
  rest: number;
}

/** Bind groups by layout and ranges, the least recently used dropped first. */
export class BindGroupCache {
  readonly #groups = new Map<string, Entry>();
  readonly #ids = new WeakMap<GPUBuffer, number>();
  /** The keys that contain a buffer, collected together with it. */
  readonly #keys = new WeakMap<GPUBuffer, Set<string>>();
  /** The batch of the next bind groups, by the id of the layout. */
  readonly #batches = new Map<number, Batch>();
  #nextId = 0;
  readonly #gpu: GPUDevice;
  readonly #counters: Counters;

  constructor(gpu: GPUDevice, counters: Counters) {
    this.#gpu = gpu;
    this.#counters = counters;
  }

  /** The bind group of a launch, after checks with clearer errors than WebGPU's. */
  get(
    compiled: CompiledKernel,
    bindings: readonly Binding<GPUBuffer>[],
    scalars: UniformSlot | undefined,
  ): GPUBindGroup {
    const { kernel } = compiled;
    const { limits } = this.#gpu;
    const sizes = bindings.map((binding, i) => boundBytes(binding, kernel.bindings[i]?.unit));
    const starts = bindings.map((binding, i) => startOf(binding, sizes[i] as number, limits));
    let key = `${compiled.layoutId}`;
    for (const [i, { buffer }] of bindings.entries())
      key += `;${this.#idOf(buffer)},${starts[i]},${sizes[i]}`;
    if (scalars) key += `;${this.#idOf(scalars.buffer)},${scalars.offset},${compiled.scalarBytes}`;
    const cached = this.#groups.get(key);
    if (cached) {
      this.#groups.delete(key);
      this.#groups.set(key, cached);
      return cached.group;
    }
    assertBindings(kernel, bindings, { starts, sizes }, limits);
    const ranges = bindings.map(({ buffer }, i) => ({
      buffer,
      offset: starts[i] as number,
      size: sizes[i] as number,
    }));
    if (scalars) ranges.push({ ...scalars, size: compiled.scalarBytes });
    const group = this.#gpu.createBindGroup({
      label: kernel.name,
      layout: compiled.layout,
      entries: ranges.map((resource, binding) => ({ binding, resource })),
    });
    if (++this.#counters.bindGroupsCreated % groupsBetweenSubmits === 0) this.#gpu.queue.submit([]);
    const buffers = ranges.map(({ buffer }) => buffer);
    this.#groups.set(key, { group, buffers, weight: this.#weigh(compiled, ranges.length) });
    for (const buffer of buffers) this.#keysOf(buffer).add(key);
    if (this.#groups.size > capacity) this.#drop(this.#groups.keys().next().value as string);
    return group;
  }

  /** Drops the bind groups of a buffer that is about to be destroyed. */
  forget(buffer: GPUBuffer): void {
    for (const key of [...this.#keysOf(buffer)]) this.#drop(key);
    this.#keys.delete(buffer);
  }

  /** Drops all bind groups. */
  clear(): void {
    for (const key of [...this.#groups.keys()]) this.#drop(key);
    this.#batches.clear();
  }

  #weigh({ layoutId }: CompiledKernel, descriptors: number): ArrayBuffer | undefined {
    if (!isNode) return undefined;
    let batch = this.#batches.get(layoutId);
    if (!batch || batch.rest === 0) {
      const groups = Math.floor(descriptorsAtOnce / Math.max(1, descriptors));
      batch = { weight: new ArrayBuffer(groups * weight), rest: groups };
      this.#batches.set(layoutId, batch);
    }
    batch.rest--;
    return batch.weight;
  }

  #drop(key: string): void {
    for (const buffer of this.#groups.get(key)?.buffers ?? []) this.#keys.get(buffer)?.delete(key);
    this.#groups.delete(key);
  }

  #idOf(buffer: GPUBuffer): number {
    let id = this.#ids.get(buffer);
    if (id === undefined) {
      id = this.#nextId++;
      this.#ids.set(buffer, id);
    }
    return id;
  }

  #keysOf(buffer: GPUBuffer): Set<string> {
    let keys = this.#keys.get(buffer);
    if (!keys) {
      keys = new Set();
      this.#keys.set(buffer, keys);
    }
    return keys;
  }
}

// Programs read most storage in quads of up to 16 bytes, so the last quad may reach into the padding.
function boundBytes({ length, dtype }: Binding<GPUBuffer>, unit: 1 | 2 | 4 = 4): number {
  const alignment = unit === 1 ? 4 : 16;
  return Math.max(alignment, Math.ceil(bytesFor(dtype, length) / alignment) * alignment);
}

/** Nothing is behind the end of a buffer, where an empty binding may lie: it is bound before the end, and not accessed. */
function startOf(
  { buffer, offset, length }: Binding<GPUBuffer>,
  size: number,
  { minStorageBufferOffsetAlignment: unit }: GPUSupportedLimits,
): number {
  const isOutside = length === 0 && offset <= buffer.size && offset + size > buffer.size;
  return isOutside && buffer.size >= size ? Math.floor((buffer.size - size) / unit) * unit : offset;
}

function assertBindings(
  kernel: Kernel,
  bindings: readonly Binding<GPUBuffer>[],
  { starts, sizes }: { readonly starts: readonly number[]; readonly sizes: readonly number[] },
  limits: GPUSupportedLimits,
): void {
  for (const [i, { buffer, offset, length, dtype }] of bindings.entries()) {
    const { name } = kernel.bindings[i] as Kernel["bindings"][number];
    const what = `binding "${name}" of kernel "${kernel.name}"`;
    const size = sizes[i] as number;
    if (!Number.isSafeInteger(length) || length < 0)
      throw new RangeError(`${what} has ${length} elements: a length is a whole number`);
    if (offset < 0 || offset % limits.minStorageBufferOffsetAlignment !== 0)
      throw new RangeError(
        `${what} starts at byte ${offset}: start it at a multiple of ${limits.minStorageBufferOffsetAlignment} (256 suits every device)`,
      );
    const end = offset + bytesFor(dtype, length);
    if (end > buffer.size)
      throw new RangeError(
        `${what} has ${length} elements in bytes ${offset} to ${end}, but its buffer has ${buffer.size}: bind fewer elements, or a larger buffer`,
      );
    if ((starts[i] as number) + size > buffer.size)
      throw new RangeError(
        `${what} needs bytes ${offset} to ${offset + size} (its ${length} elements padded to 16 bytes), but its buffer has ${buffer.size}: ` +
          "create the buffer with its size rounded up to a multiple of 16, or use device.allocate()",
      );
    if (size > limits.maxStorageBufferBindingSize)
      throw new RangeError(
        `${what} spans ${size} bytes, but this device binds at most ${limits.maxStorageBufferBindingSize}: take a smaller batch, or launch it on several windows`,
      );
    if ((buffer.usage & BufferUsage.storage) === 0)
      throw new TypeError(
        `${what} is a buffer without GPUBufferUsage.STORAGE: create it with that usage`,
      );
  }
  checkSharing(kernel, bindings);
}
