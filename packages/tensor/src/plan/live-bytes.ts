import { lifetimes } from "./assign-memory.js";
import type { PlanGraph } from "./graph.js";

/** How much memory the transients of a graph hold while each of its nodes runs, and most of all. */
export class LiveBytes {
  readonly #live: Float64Array;
  readonly #peak: number;

  constructor(graph: PlanGraph) {
    this.#live = new Float64Array(graph.nodes.length);
    for (const { storage, first, last } of lifetimes(graph))
      this.add(storage.byteLength, first - 1, last + 1);
    this.#peak = this.#live.reduce((a, b) => Math.max(a, b), 0);
  }

  /** Whether so much more could be held strictly between two nodes with the peak staying what it is. */
  hasRoom(bytes: number, after: number, before: number): boolean {
    return (
      bytes <= 0 || this.#live.subarray(after + 1, before).every((n) => n + bytes <= this.#peak)
    );
  }

  add(bytes: number, after: number, before: number): void {
    for (let n = Math.max(0, after + 1); n < Math.min(before, this.#live.length); n++)
      this.#live[n] = (this.#live[n] as number) + bytes;
  }
}
