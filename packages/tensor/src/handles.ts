import { savedBelow } from "./returned.js";
import type { Storage } from "./storage.js";
import type { Tensor } from "./tensor.js";

/** Which tensors keep their memory, until they are disposed or collected as garbage. */
export class Handles {
  /** Tensors that were collected instead of being disposed. */
  leaked = 0;
  readonly #release: (storage: Storage) => void;
  readonly #registry: FinalizationRegistry<Storage>;
  readonly #tracked = new WeakSet<Tensor>();
  /** Tensors with a handle only because a step was asked to keep its graph. */
  readonly #saved = new WeakSet<Tensor>();
  /** Whether there ever were such tensors: most programs have none, and a backward pass asks for each tensor it used. */
  #hasSaved = false;

  /** @param release called when the last handle of memory is gone. */
  constructor(release: (storage: Storage) => void) {
    this.#release = release;
    this.#registry = new FinalizationRegistry((storage) => {
      this.leaked++;
      this.drop(storage);
    });
  }

  /** Makes a tensor keep its memory. */
  track<T extends Tensor>(tensor: T): T {
    if (this.#tracked.has(tensor)) return tensor;
    this.#tracked.add(tensor);
    tensor.storage.handles++;
    this.#registry.register(tensor, tensor.storage, tensor);
    return tensor;
  }

  untrack(tensor: Tensor, storage: Storage): void {
    if (!this.#tracked.delete(tensor)) return;
    this.#registry.unregister(tensor);
    this.drop(storage);
  }

  /** Takes one handle of memory away. */
  drop(storage: Storage): void {
    storage.handles--;
    if (storage.handles <= 0) this.#release(storage);
  }

  /** Keeps whatever a backward pass from these results could read. */
  keepGraph(results: readonly Tensor[]): void {
    for (const result of results)
      for (const tensor of savedBelow(result)) {
        if (this.#tracked.has(tensor)) continue;
        tensor.keep();
        this.#saved.add(tensor);
        this.#hasSaved = true;
      }
  }

  /** Gives back what is kept for nothing but a backward pass that has now been. */
  releaseSaved(tensors: readonly Tensor[], onDrop: (undo: () => void) => void): void {
    if (!this.#hasSaved) return;
    for (const tensor of tensors) {
      if (!this.#saved.delete(tensor)) continue;
      this.untrack(tensor, tensor.storage);
      onDrop(() => {
        this.#saved.add(tensor);
        this.track(tensor);
      });
    }
  }
}
