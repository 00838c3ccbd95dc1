import { type Device, MemoryBudgetError } from "@halfstep/device";

/** The buffers of plans' slots. Plans share them, because plans never run at the same time. */
export class SharedSlots {
  readonly #device: Device;
  /** Each buffer, with the number of plans that use it. */
  readonly #users = new Map<GPUBuffer, number>();

  constructor(device: Device) {
    this.#device = device;
  }

  /**
   * A buffer for each slot of a plan: a buffer of other plans where it is large enough, else a new one. `keptBytes` must still fit in
   * the budget.
   */
  take(sizes: readonly number[], keptBytes: number): GPUBuffer[] {
    const free = [...this.#users.keys()].sort((a, b) => a.size - b.size);
    const order = sizes.map((bytes, slot) => ({ bytes, slot })).sort((a, b) => b.bytes - a.bytes);
    const taken: (GPUBuffer | undefined)[] = sizes.map(() => undefined);
    const missing: { bytes: number; slot: number }[] = [];
    for (const { bytes, slot } of order) {
      const fit = free.findIndex(({ size }) => size >= bytes);
      if (fit >= 0) taken[slot] = free.splice(fit, 1)[0];
      else missing.push({ bytes, slot });
    }
    this.requireRoom(missing.reduce((sum, { bytes }) => sum + bytes, keptBytes));
    for (const { bytes, slot } of missing) taken[slot] = this.#device.allocate(bytes);
    const buffers = taken as GPUBuffer[];
    for (const buffer of buffers) this.#users.set(buffer, (this.#users.get(buffer) ?? 0) + 1);
    return buffers;
  }

  /** Releases a buffer unless another plan uses it. */
  release(buffer: GPUBuffer): void {
    const others = (this.#users.get(buffer) ?? 0) - 1;
    if (others > 0) this.#users.set(buffer, others);
    else {
      this.#users.delete(buffer);
      this.#device.release(buffer);
    }
  }

  /** Throws a MemoryBudgetError where so many bytes do not fit in the budget. */
  requireRoom(wanted: number): void {
    const { live, budget } = this.#device.memory;
    if (live + wanted > budget) throw new MemoryBudgetError(wanted, live, budget);
  }
}
