import type { Carrier } from "../carrier.js";

/** Memory of a carrier that is used again, because the first touch of new memory is slow. */
export class MemoryPool {
  readonly #carrier: Carrier;
  readonly #free: Uint8Array[] = [];

  constructor(carrier: Carrier) {
    this.#carrier = carrier;
  }

  /** Memory of exactly this size, with any content. */
  take(bytes: number): Uint8Array {
    const found = this.#free.findIndex((each) => each.length === bytes);
    return (
      (found >= 0 ? this.#free.splice(found, 1)[0] : undefined) ?? this.#carrier.allocate(bytes)
    );
  }

  give(memory: Uint8Array): void {
    this.#free.push(memory);
  }
}
