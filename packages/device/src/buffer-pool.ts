import type { Counters } from "./counters.js";
import { MemoryBudgetError } from "./errors.js";
import { BufferUsage } from "./flags.js";

/** Bytes of pooled buffers. Scalars and staging buffers, a few KiB, are not counted. */
export interface MemoryAccount {
  /** Bytes that are handed out and not released. */
  readonly live: number;
  /** The largest `live` since the device was opened or `resetPeak` was called. */
  readonly peak: number;
  /** Bytes that are released and kept for reuse. */
  readonly pooled: number;
  /** Upper bound of `live + pooled`. */
  readonly budget: number;
  resetPeak(): void;
}

/** Options of allocating a buffer. */
export interface AllocateOptions {
  /** Clear the buffer if it was used before; a new one is always zero. Default false. */
  readonly zero?: boolean;
}

/**
 * Bytes that a request occupies: a multiple of 256 below 64 KiB, and above that one of eight sizes for each doubling, so
 * that at most 12.5 % is wasted and released buffers fit again.
 */
export function sizeClass(bytes: number): number {
  const exact = Math.max(256, Math.ceil(bytes / 256) * 256);
  if (exact < 65_536) return exact;
  const step = 2 ** Math.floor(Math.log2(exact)) / 8;
  return Math.ceil(exact / step) * step;
}

/** Storage buffers by size class: released ones are handed out again instead of being created anew. */
export class BufferPool implements MemoryAccount {
  readonly budget: number;
  #live = 0;
  #peak = 0;
  #pooled = 0;
  readonly #free = new Map<number, GPUBuffer[]>();
  readonly #out = new Set<GPUBuffer>();
  readonly #released = new WeakSet<GPUBuffer>();
  readonly #gpu: GPUDevice;
  readonly #counters: Counters;
  readonly #destroy: (buffer: GPUBuffer) => void;

  /** `destroy` is called with each buffer that is no longer kept. */
  constructor(
    gpu: GPUDevice,
    counters: Counters,
    budget: number,
    destroy: (buffer: GPUBuffer) => void,
  ) {
    this.#gpu = gpu;
    this.#counters = counters;
    this.budget = budget;
    this.#destroy = destroy;
  }

  get live(): number {
    return this.#live;
  }
  get peak(): number {
    return this.#peak;
  }
  get pooled(): number {
    return this.#pooled;
  }
  resetPeak(): void {
    this.#peak = this.#live;
  }

  /** Takes a buffer; returns it and whether it was used before. */
  take(bytes: number): { buffer: GPUBuffer; isRecycled: boolean } {
    const size = this.#sizeFor(bytes);
    const recycled = this.#free.get(size)?.pop();
    if (recycled) this.#pooled -= size;
    else this.#makeRoom(size);
    const buffer =
      recycled ??
      this.#gpu.createBuffer({
        size,
        usage: BufferUsage.storage | BufferUsage.copySource | BufferUsage.copyTarget,
      });
    if (!recycled) this.#counters.buffersCreated++;
    this.#out.add(buffer);
    this.#released.delete(buffer);
    this.#live += size;
    this.#peak = Math.max(this.#peak, this.#live);
    return { buffer, isRecycled: recycled !== undefined };
  }

  give(buffer: GPUBuffer): void {
    if (!this.#out.delete(buffer))
      throw new Error(
        "release() got a buffer that is not handed out: release each buffer of allocate() once, and destroy your own buffers yourself",
      );
    this.#released.add(buffer);
    const { size } = buffer;
    this.#live -= size;
    this.#pooled += size;
    const free = this.#free.get(size);
    if (free) free.push(buffer);
    else this.#free.set(size, [buffer]);
  }

  /** Throws for a released buffer, which may have another user by now. Buffers that are not from this pool pass. */
  assertHeld(buffer: GPUBuffer, caller: string): void {
    if (this.#released.has(buffer))
      throw new Error(`${caller} got a buffer that was released: release it after its last use`);
  }

  /** Destroys the released buffers. */
  trim(): void {
    for (const buffers of this.#free.values()) for (const buffer of buffers) this.#destroy(buffer);
    this.#free.clear();
    this.#pooled = 0;
  }

  #sizeFor(bytes: number): number {
    const { maxBufferSize } = this.#gpu.limits;
    if (!Number.isSafeInteger(bytes) || bytes < 0)
      throw new RangeError(`allocate() needs a whole number of bytes, not ${bytes}`);
    const largest = Math.floor(maxBufferSize / 256) * 256;
    if (bytes > largest)
      throw new RangeError(
        `a buffer of ${bytes} bytes exceeds this device's maxBufferSize of ${maxBufferSize}: split it, or use a smaller batch`,
      );
    return Math.min(sizeClass(bytes), largest);
  }

  #makeRoom(size: number): void {
    if (this.#live + this.#pooled + size <= this.budget) return;
    if (this.#live + size > this.budget) throw new MemoryBudgetError(size, this.#live, this.budget);
    this.trim();
  }
}
