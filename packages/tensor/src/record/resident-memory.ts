import type { Binding, DType, KernelView } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { RecordingError, ShapeError } from "../errors.js";
import { type HostData, type Memory, memoryOf, requireNumbers, Storage } from "./storage.js";

/** Options of reading memory. */
export interface ReadOptions {
  /** "background" is a read that no step waits for: it is not counted as a wait of the host. Default "host". */
  readonly wait?: "host" | "background";
}

/** Allocates, releases, writes and reads memory. */
export interface MemoryOwner {
  /** Whether memory consists of `GPUBuffer`s, as `tensor.buffer` returns and `fromBuffer()` takes. Absent: no. */
  readonly usesGpuBuffers?: boolean | undefined;
  /** Zeroed memory of at least this many bytes. Throws a `MemoryBudgetError` where there is no room. */
  allocate(bytes: number): Memory;
  /** Takes memory back. Later reads, writes and releases of it are refused. */
  release(memory: Memory): void;
  /** Writes elements, encoded as the binding's dtype, in order with runs. The caller may change the data after the call. */
  write(binding: Binding<Memory>, data: HostData): void;
  /** The elements of a binding, decoded, after all runs and writes before the call and before all later ones. */
  read(binding: Binding<Memory>, options?: ReadOptions): Promise<KernelView>;
}

/** Memory of a runtime that outlives recordings: allocated, filled, read and released through its runner. */
export class ResidentMemory {
  readonly #runner: MemoryOwner;
  #isDisposed = false;
  /** Memory that was allocated or adopted, and not released. */
  readonly #held = new Set<Memory>();
  /** Releases memory whose storage was collected as garbage, such as the state of an unreachable optimizer. */
  readonly #unreachable: FinalizationRegistry<Memory>;

  constructor(runner: MemoryOwner) {
    this.#runner = runner;
    this.#unreachable = new FinalizationRegistry((memory) => this.#release(memory));
  }

  /** Makes memory of the runner that of a storage. */
  adopt(storage: Storage, memory: Memory): void {
    storage.memory = memory;
    this.#held.add(memory);
  }

  /** Whether all memory was released. */
  get isDisposed(): boolean {
    return this.#isDisposed;
  }

  assertUsable(): void {
    if (this.#isDisposed)
      throw new RecordingError(
        "this runtime was disposed, and all its memory with it: make another",
      );
  }

  /** Releases all memory. Afterwards the use of its storages is refused. */
  dispose(): void {
    this.#isDisposed = true;
    for (const memory of this.#held) this.#runner.release(memory);
    this.#held.clear();
  }

  /** Zeroed memory. */
  allocate(bytes: number): Storage {
    this.assertUsable();
    const storage = new Storage(this, Math.max(16, Math.ceil(bytes / 16) * 16));
    const memory = this.#runner.allocate(storage.byteLength);
    this.adopt(storage, memory);
    this.#unreachable.register(storage, memory, storage);
    return storage;
  }

  /** Memory that holds these elements. */
  holding(data: HostData, dtype: DType): Storage {
    requireNumbers(data);
    const { length } = data;
    const storage = this.allocate(bytesFor(dtype, length));
    if (length > 0)
      this.#runner.write({ buffer: memoryOf(storage), offset: 0, length, dtype }, data);
    return storage;
  }

  /** Memory of the caller's. */
  foreign(buffer: GPUBuffer, shape: readonly number[], dtype: DType): Storage {
    this.assertUsable();
    if (!this.#runner.usesGpuBuffers)
      throw new RecordingError(
        "fromBuffer() takes a GPUBuffer, which only a runtime in GPU memory can use, such as that of gpuRuntime()",
      );
    const size = shape.reduce((a, b) => a * b, 1);
    const words = Math.max(1, Math.ceil(bytesFor(dtype, size) / 4));
    if (buffer.size < 4 * words)
      throw new ShapeError(
        `fromBuffer: shape [${shape}] of ${dtype} needs a buffer of ${4 * words} bytes, this one has ${buffer.size}`,
      );
    const quads = 16 * Math.ceil(words / 4);
    const storage = new Storage(this, buffer.size < quads ? 4 * words : quads);
    storage.memory = buffer;
    storage.isForeign = true;
    return storage;
  }

  write(binding: Binding<Storage>, values: ArrayLike<number>): void {
    this.assertUsable();
    const data = ArrayBuffer.isView(values) ? (values as HostData) : Array.from(values);
    this.#runner.write({ ...binding, buffer: memoryOf(binding.buffer) }, data);
  }

  async read(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView> {
    this.assertUsable();
    return this.#runner.read({ ...binding, buffer: memoryOf(binding.buffer) }, options);
  }

  /** Releases memory without handles; returns whether it did. */
  free(storage: Storage): boolean {
    if (storage.handles > 0 || !storage.memory) return false;
    this.#unreachable.unregister(storage);
    this.#release(storage.memory);
    storage.memory = undefined;
    return true;
  }

  #release(memory: Memory): void {
    if (this.#held.delete(memory)) this.#runner.release(memory);
  }
}
