import { BindGroupCache } from "./bind-groups.js";
import { type AllocateOptions, BufferPool, type MemoryAccount } from "./buffer-pool.js";
import { type Capabilities, probeCapabilities, type Tier } from "./capabilities.js";
import { Counters } from "./counters.js";
import { type CompilerDevices, DriverCompiler } from "./driver-compiler.js";
import { type DeviceEncoder, makeEncoder, ScalarChunks } from "./encoder.js";
import type { DeviceLostError } from "./errors.js";
import { Health } from "./health.js";
import type { Kernel, Launch } from "./launch.js";
import { requireGpu, requireOptions, wrapOptions } from "./options.js";
import { shareCores } from "./paced.js";
import {
  type CompiledKernel,
  PipelineCache,
  type PrewarmOptions,
  type Storage,
} from "./pipeline-cache.js";
import { type PreparedPass, preparePass, type Resolver } from "./prepared.js";
import { ReadBack } from "./read-back.js";
import { makeStaging, type Staging } from "./staging.js";
import { SubmissionQueue } from "./submission-queue.js";
import { measure, type Timed } from "./timing.js";

/** The reason of a wait, which selects its counter: the host needs a result, it is too far ahead of the device, or no step waits. */
export type WaitKind = "host" | "backpressure" | "background";

/** Options of waiting for the device. */
export interface WaitOptions {
  /** Which counter the wait adds to; "background" adds to none. Default "host". */
  readonly wait?: WaitKind;
}

/** Options of wrapping a `GPUDevice`. */
export interface WrapOptions {
  /** "packed" does not use half precision in WGSL; "native" requires it. Default: native where it works. */
  readonly tier?: Tier;
  /** Most bytes that may be allocated at a time. Default: unbounded. */
  readonly memoryBudget?: number;
  /**
   * The adapter's information (`adapter.info`). Default: `gpu.adapterInfo`, which in Node says nothing about matrices, so that products
   * would not use tensor cores.
   */
  readonly adapterInfo?: GPUAdapterInfo;
  /**
   * The class of hardware whose kernels and block sizes the device uses: a vendor in lower case, or "software". Default: that of the
   * adapter. Sums of products differ between classes in their last bits.
   */
  readonly hardwareClass?: string;
  /**
   * Further devices of the same adapter. They compile programs in parallel where the driver compiles in one thread for each device, at
   * the first dispatch (Mesa's software driver). Default: none.
   */
  readonly compilers?: CompilerDevices;
  /** A name for messages. Default: the label of the GPUDevice, or the name of its adapter. */
  readonly label?: string;
}

/**
 * A GPUDevice with pooled memory, cached pipelines and bind groups, and errors that reject awaits.
 *
 * The host checks calls at once where it can. Errors that only WebGPU detects reject the next await (`read`, `settled`, `prewarm`,
 * `timed`) with a `ShaderError`, `GpuError` or {@link DeviceLostError}; after that every await rejects.
 */
export interface Device {
  readonly gpu: GPUDevice;
  readonly label: string;
  readonly capabilities: Capabilities;
  readonly memory: MemoryAccount;
  readonly counters: Counters;
  /** The error with which every await rejects after a failure. */
  readonly failure: Error | undefined;
  /** Resolves when the device is lost or destroyed. Never rejects. */
  readonly lost: Promise<DeviceLostError>;

  /**
   * A storage buffer of at least `bytes` bytes (STORAGE, COPY_SRC, COPY_DST; a multiple of 256). Throws a
   * `MemoryBudgetError` before anything is allocated.
   */
  allocate(bytes: number, options?: AllocateOptions): GPUBuffer;
  /** Returns a buffer to the pool. Commands that use it must have been submitted. */
  release(buffer: GPUBuffer): void;
  /** Destroys released buffers that are kept for reuse, and drops their bind groups. Pending reads are submitted first. */
  trim(): void;

  /**
   * Copies bytes into a buffer, in order with submits. `offset` is a multiple of 4 bytes; WebGPU writes whole words, so data that ends
   * inside a word (an odd number of halves) is padded with zeros.
   *
   * @throws RangeError for bytes outside of the buffer. TypeError for data that is neither a buffer of the host nor a view of one.
   */
  write(buffer: GPUBuffer, offset: number, data: BufferSource): void;
  /** The bytes of a buffer at this place of the queue. Reads of one turn share one submit and one wait. */
  read(
    buffer: GPUBuffer,
    offset: number,
    bytes: number,
    options?: WaitOptions,
  ): Promise<ArrayBuffer>;
  /** Resolves when everything submitted so far is done. */
  settled(options?: WaitOptions): Promise<void>;
  /** Memory of so many bytes through which the host gets copies that are a part of its own submits. */
  staging(bytes: number): Staging;

  /** Makes a target that encodes launches at once. */
  encoder(): DeviceEncoder;
  /** Resolves launches once for replay. */
  prepare(launches: readonly Launch<GPUBuffer>[]): PreparedPass;
  /** Submits command buffers, in order. */
  submit(commands: readonly GPUCommandBuffer[]): void;
  /**
   * Calls `work`, which may submit and write, in order with submits, writes and reads. If `ready` is given, `work` and everything after it
   * wait for it; where it rejects, the device fails with its reason.
   */
  enqueue(work: () => void, ready?: Promise<unknown>): void;
  /** Resolves when everything so far is submitted: in this turn, unless something waits for programs that are being compiled. */
  submitted(): Promise<void>;

  /** The kernel for a choice of storage, compiled now if necessary. */
  pipelineFor(kernel: Kernel, bindings: Storage): CompiledKernel;
  /** Compiles the kernels of launches in parallel, without blocking, each program once. */
  prewarm(
    launches: Iterable<{ readonly kernel: Kernel; readonly bindings: Storage }>,
    options?: PrewarmOptions,
  ): Promise<void>;

  /** Measures the GPU time of the submits of `fn`, in milliseconds; undefined without timestamps. */
  timed<T>(fn: () => T): Promise<Timed<T>>;
  /** Ends the device: pending and later awaits reject. */
  destroy(): void;
}

/**
 * Makes a {@link Device} from a GPUDevice. Runs a few tiny programs on it to test its abilities.
 *
 * @throws TypeError for what is no GPUDevice; RangeError for unknown options
 */
export async function wrapDevice(gpu: GPUDevice, options: WrapOptions = {}): Promise<Device> {
  requireGpu(gpu);
  requireOptions("wrapDevice(gpu, options)", options, wrapOptions);
  const capabilities = await probeCapabilities(gpu, options);
  if (capabilities.hardware.class === "software") shareCores();
  const { description, device } = capabilities.adapter;
  const label = options.label ?? (gpu.label || description || device || "GPU");
  return makeDevice(gpu, label, capabilities, options);
}

function makeDevice(
  gpu: GPUDevice,
  label: string,
  capabilities: Capabilities,
  { memoryBudget = Number.POSITIVE_INFINITY, compilers }: WrapOptions,
): Device {
  const counters = new Counters();
  const health = new Health(gpu, label);
  const bindGroups = new BindGroupCache(gpu, counters);
  const queue = new SubmissionQueue((error) => health.fail(asError(error)));
  void health.lost.then(() => queue.release());
  const memory = new BufferPool(gpu, counters, memoryBudget, (buffer) =>
    // Work that waits may use a buffer that was released after it.
    queue.add(() => {
      bindGroups.forget(buffer);
      buffer.destroy();
    }),
  );
  const driver = capabilities.adapter.isFallback ? new DriverCompiler(gpu, compilers) : undefined;
  const pipelines = new PipelineCache(gpu, capabilities, counters, health, driver);
  const resolver: Resolver = { gpu, pipelines, bindGroups, counters, queue };

  const submitNow = (commands: readonly GPUCommandBuffer[]): void => {
    gpu.queue.submit(commands);
    counters.submits++;
  };
  const readBack = new ReadBack(gpu, counters, health, submitNow);
  const submit = (commands: readonly GPUCommandBuffer[]): void =>
    queue.add(() => {
      readBack.flush();
      submitNow(commands);
    });
  const write = (buffer: GPUBuffer, offset: number, data: BufferSource): void => {
    const words = wholeWords(data);
    // The caller may change the data after the call.
    const bytes = queue.isHeld ? words.slice() : words;
    // Work that waited may write to a buffer that was released after it.
    if (!queue.isCalling) memory.assertHeld(buffer, "write()");
    if (offset % 4 !== 0 || !(offset >= 0) || offset + bytes.byteLength > buffer.size)
      throw new RangeError(
        `write() wants bytes ${offset} to ${offset + bytes.byteLength} of a buffer of ${buffer.size}: start at a multiple of 4 and end inside`,
      );
    // Deno ends the process at a write of nothing.
    if (bytes.byteLength === 0) return;
    queue.add(() => {
      readBack.flush();
      gpu.queue.writeBuffer(buffer, offset, bytes);
    });
    counters.writes++;
  };
  const allocate = (bytes: number, { zero = false }: AllocateOptions = {}): GPUBuffer => {
    const { buffer, isRecycled } = memory.take(bytes);
    if (zero && isRecycled) {
      const commands = gpu.createCommandEncoder();
      commands.clearBuffer(buffer);
      submit([commands.finish()]);
    }
    return buffer;
  };
  const count = (wait: WaitKind = "host"): void => {
    if (wait === "host") counters.hostWaits++;
    else if (wait === "backpressure") counters.backpressureWaits++;
  };
  // The failure of the device is more useful than the errors of later calls.
  const checked = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } finally {
      await health.assertWell();
    }
  };
  const chunks = new ScalarChunks(resolver);
  const allocateZeroed = (bytes: number): GPUBuffer => allocate(bytes, { zero: true });

  return {
    gpu,
    label,
    capabilities,
    memory,
    counters,
    lost: health.lost,
    get failure() {
      return health.failure;
    },
    allocate,
    release: (buffer) => memory.give(buffer),
    trim() {
      // Pending reads may read buffers that are destroyed below.
      queue.add(() => readBack.flush());
      memory.trim();
    },
    write,
    async read(buffer, offset, bytes, options) {
      memory.assertHeld(buffer, "read()");
      counters.reads++;
      count(options?.wait);
      return queue.result(() => readBack.read(buffer, offset, bytes));
    },
    async settled(options) {
      count(options?.wait);
      await queue.result(() => readBack.settled());
    },
    staging: (bytes) => makeStaging({ gpu, counters, health, queue }, bytes),
    encoder: () =>
      makeEncoder({
        ...{ resolver, chunks, allocateZeroed, write, submit },
        release: (buffer) => memory.give(buffer),
        hardwareClass: capabilities.hardware.class,
      }),
    prepare: (launches) => preparePass(resolver, launches, write),
    submit,
    enqueue: (work, ready) => queue.add(work, ready),
    submitted: () => queue.called(),
    pipelineFor(kernel, bindings) {
      const found = pipelines.get(kernel, bindings);
      void found.pipeline;
      return found;
    },
    prewarm: (launches, options) => checked(() => pipelines.prewarm(launches, options)),
    timed: (fn) =>
      checked(() => measure({ gpu, hasTimestamps: capabilities.hasTimestamps, submit, queue }, fn)),
    destroy() {
      health.destroyed();
      gpu.destroy();
      queue.release();
      bindGroups.clear();
    },
  };
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));

// Dawn in Node takes typed arrays but no DataView, and Float16Array is unknown to some engines.
function wholeWords(data: BufferSource): Uint8Array<ArrayBuffer> {
  const kind = Object.prototype.toString.call(data).slice(8, -1);
  // A list of numbers would be taken for bytes, and a number for so many zeros.
  if (!ArrayBuffer.isView(data) && kind !== "ArrayBuffer" && kind !== "SharedArrayBuffer")
    throw new TypeError(`write() takes an ArrayBuffer or a view of one, and not: ${kind}`);
  const bytes = ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
  if (bytes.byteLength % 4 === 0) return bytes;
  const padded = new Uint8Array(Math.ceil(bytes.byteLength / 4) * 4);
  padded.set(bytes);
  return padded;
}
