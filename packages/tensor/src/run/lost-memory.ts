import type { Memory } from "../record/storage.js";

/** Memory of values that runs should have kept and did not compute. */
export class LostMemory {
  readonly #errors: WeakMap<Memory, Error> = new WeakMap();

  /** Marks memory as lost, with the reason. */
  add(memory: Iterable<Memory>, reason: Error): void {
    for (const each of memory) this.#errors.set(each, reason);
  }

  /** Called when memory is handed out anew. */
  reused(memory: Memory): void {
    this.#errors.delete(memory);
  }

  /** Throws the reason where a value was lost. */
  assertHas(memory: Memory): void {
    const reason = this.#errors.get(memory);
    if (reason) throw reason;
  }
}
