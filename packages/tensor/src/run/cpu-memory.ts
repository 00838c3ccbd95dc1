import { MemoryBudgetError } from "@halfstep/device";
import type { CpuBuffer } from "@halfstep/kernels";
import { usableMemory } from "./usable-memory.js";

/** The memory of a CPU runner that outlives its runs, and its budget. */
export class CpuMemory {
  readonly #allocate: (bytes: number) => CpuBuffer;
  readonly #budget: number;
  #live = 0;

  constructor(
    allocate: (bytes: number) => CpuBuffer,
    budget: number = 0.75 * (usableMemory() ?? Number.POSITIVE_INFINITY),
  ) {
    this.#allocate = allocate;
    this.#budget = Math.floor(budget);
  }

  /** Throws a MemoryBudgetError where buffers of so many bytes, in all, do not fit in the budget. */
  requireRoom(byteLength: number, isWide: boolean): void {
    const wanted = isWide ? byteLength * Float64Array.BYTES_PER_ELEMENT : byteLength;
    if (this.#live + wanted > this.#budget)
      throw new MemoryBudgetError(wanted, this.#live, this.#budget);
  }

  /** Memory that counts until it is released. */
  allocate(bytes: number): CpuBuffer {
    const buffer = this.#allocate(bytes);
    this.#live += sizeOf(buffer);
    return buffer;
  }

  release(buffer: CpuBuffer): void {
    this.#live -= sizeOf(buffer);
  }
}

const sizeOf = ({ byteLength, wide }: CpuBuffer): number => wide?.byteLength ?? byteLength;
