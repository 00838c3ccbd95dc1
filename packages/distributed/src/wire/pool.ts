import type { Carrier } from "../carrier.js";

/**
 * Arrays that are used again: the first touch of new memory is slow, and large new arrays make the garbage collector run. An array that is taken
 * need not be given back.
 */
class Pool<T extends { readonly length: number }> {
  readonly #allocate: (length: number) => T;
  readonly #free: T[] = [];

  /** @param allocate makes an array of some elements. */
  constructor(allocate: (length: number) => T) {
    this.#allocate = allocate;
  }

  /** An array of exactly this length, with any content. */
  take(length: number): T {
    const found = this.#free.findIndex((each) => each.length === length);
    return (found >= 0 ? this.#free.splice(found, 1)[0] : undefined) ?? this.#allocate(length);
  }

  give(array: T): void {
    this.#free.push(array);
  }
}

/** Memory for collectives of a carrier, in bytes. */
export type MemoryPool = Pool<Uint8Array>;

export const memoryPool = (carrier: Carrier): MemoryPool =>
  new Pool((bytes) => carrier.allocate(bytes));

/** Memory for numbers that no collective carries. */
export type NumberPool = Pool<Float32Array>;

export const numberPool = (): NumberPool => new Pool((length) => new Float32Array(length));
