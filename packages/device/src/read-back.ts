import { sizeClass } from "./buffer-pool.js";
import type { Counters } from "./counters.js";
import { BufferUsage } from "./flags.js";
import type { Health } from "./health.js";
import { paced } from "./paced.js";
import { createStaging, mapped } from "./staging.js";

/** Staging buffers kept for reuse. */
const kept = 6;
/** Limit in bytes: larger staging buffers are not kept, and combined reads do not exceed it. */
const largestKept = 64 * 2 ** 20;
/** The size of a buffer that is mapped for no contents. */
const fenceBytes = 4;

interface Wanted {
  readonly buffer: GPUBuffer;
  /** First byte to copy, and number of bytes, both multiples of 4. */
  readonly start: number;
  readonly size: number;
  /** Offset of the requested bytes inside the copy. */
  readonly skip: number;
  readonly bytes: number;
  readonly resolve: (bytes: ArrayBuffer) => void;
  readonly reject: (reason: unknown) => void;
}

/** Reads buffers through a ring of staging buffers. Reads of the same turn share one copy, one submit and one map. */
export class ReadBack {
  readonly #free: GPUBuffer[] = [];
  /** Those of {@link settled}: a wait that overlaps a read, which depends on timing, creates no buffer. */
  readonly #fences: GPUBuffer[] = [];
  #wanted: Wanted[] = [];
  #wantedBytes = 0;
  readonly #gpu: GPUDevice;
  readonly #counters: Counters;
  readonly #health: Health;
  readonly #submit: (commands: readonly GPUCommandBuffer[]) => void;

  constructor(
    gpu: GPUDevice,
    counters: Counters,
    health: Health,
    submit: (commands: readonly GPUCommandBuffer[]) => void,
  ) {
    this.#gpu = gpu;
    this.#counters = counters;
    this.#health = health;
    this.#submit = submit;
  }

  read(buffer: GPUBuffer, offset: number, bytes: number): Promise<ArrayBuffer> {
    const start = Math.floor(offset / 4) * 4;
    const size = Math.ceil((offset + bytes) / 4) * 4 - start;
    if (!(offset >= 0) || !(bytes >= 0) || start + size > buffer.size)
      throw new RangeError(
        `read() wants bytes ${offset} to ${offset + bytes}, but the buffer has ${buffer.size}`,
      );
    if ((buffer.usage & BufferUsage.copySource) === 0)
      throw new TypeError(
        "read() got a buffer without GPUBufferUsage.COPY_SRC: create it with that usage",
      );
    if (this.#wantedBytes + size > largestKept) this.flush();
    if (this.#wanted.length === 0) queueMicrotask(() => this.flush());
    return new Promise((resolve, reject) => {
      this.#wanted.push({ buffer, start, size, skip: offset - start, bytes, resolve, reject });
      this.#wantedBytes += Math.ceil(size / 8) * 8;
    });
  }

  /** Resolves when all work submitted before this call is done. */
  async settled(): Promise<void> {
    this.flush();
    const fence = this.#fences.pop() ?? createStaging(this.#gpu, this.#counters, fenceBytes);
    const done = this.#gpu.queue.onSubmittedWorkDone();
    // Both begin at once: in Firefox each takes 100 ms.
    await Promise.all([
      paced(done.catch((reason: unknown) => this.#health.explain(reason))),
      this.#map(fence, fenceBytes),
    ]);
    fence.unmap();
    this.#fences.push(fence);
    await this.#health.assertWell();
  }

  /**
   * Submits the copies of pending reads. Called before any other submit or write, so that reads keep their place in the
   * queue.
   */
  flush(): void {
    if (this.#wanted.length === 0) return;
    const wanted = this.#wanted;
    const bytes = Math.max(8, this.#wantedBytes);
    this.#wanted = [];
    this.#wantedBytes = 0;
    const staging = this.#take(bytes);
    const commands = this.#gpu.createCommandEncoder();
    let at = 0;
    for (const { buffer, start, size } of wanted) {
      if (size > 0) commands.copyBufferToBuffer(buffer, start, staging, at, size);
      at += Math.ceil(size / 8) * 8;
    }
    this.#submit([commands.finish()]);
    this.#finish(wanted, staging, bytes).catch((reason: unknown) => {
      for (const { reject } of wanted) reject(reason);
    });
  }

  async #finish(wanted: readonly Wanted[], staging: GPUBuffer, bytes: number): Promise<void> {
    await this.#map(staging, bytes);
    const mapped = staging.getMappedRange(0, bytes);
    let at = 0;
    const copies = wanted.map(({ size, skip, bytes: own }) => {
      const copy = mapped.slice(at + skip, at + skip + own);
      at += Math.ceil(size / 8) * 8;
      return copy;
    });
    staging.unmap();
    this.#give(staging);
    await this.#health.assertWell();
    for (const [i, { resolve }] of wanted.entries()) resolve(copies[i] as ArrayBuffer);
  }

  // onSubmittedWorkDone may resolve on a lost device, whereas mapping rejects there: hence a map in either case.
  #map(staging: GPUBuffer, bytes: number): Promise<void> {
    return mapped(staging, bytes, this.#health);
  }

  #take(bytes: number): GPUBuffer {
    let best = -1;
    for (const [i, { size }] of this.#free.entries())
      if (size >= bytes && (best < 0 || size < (this.#free[best] as GPUBuffer).size)) best = i;
    if (best >= 0) return this.#free.splice(best, 1)[0] as GPUBuffer;
    return createStaging(this.#gpu, this.#counters, sizeClass(Math.max(bytes, 4096)));
  }

  #give(staging: GPUBuffer): void {
    if (staging.size > largestKept) {
      staging.destroy();
      return;
    }
    this.#free.push(staging);
    if (this.#free.length > kept) this.#free.shift()?.destroy();
  }
}
