import { lifetimes } from "../assign-memory.js";
import type { PlanGraph } from "../graph.js";

/** The bytes that the transients of a graph take while each of its nodes runs, and their peak. */
export class LiveBytes {
  readonly #live: Float64Array;
  readonly #peak: number;

  constructor(graph: PlanGraph) {
    const { length } = graph.nodes;
    const changes = new Float64Array(length + 1);
    for (const { storage, first, last } of lifetimes(graph)) {
      const [from, to] = [Math.max(0, first), Math.min(last + 1, length)];
      changes[from] = (changes[from] as number) + storage.byteLength;
      changes[to] = (changes[to] as number) - storage.byteLength;
    }
    let live = 0;
    this.#live = changes.map((change) => (live += change));
    this.#peak = this.#live.reduce((a, b) => Math.max(a, b), 0);
  }

  /** Whether so many more bytes fit strictly between two nodes without raising the peak. */
  hasRoom(bytes: number, after: number, before: number): boolean {
    return (
      bytes <= 0 || this.#live.subarray(after + 1, before).every((n) => n + bytes <= this.#peak)
    );
  }

  /** Adds bytes (or subtracts them, where negative) strictly between two nodes. */
  add(bytes: number, after: number, before: number): void {
    for (let n = after + 1; n < before; n++) this.#live[n] = (this.#live[n] as number) + bytes;
  }
}
