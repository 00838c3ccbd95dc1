import type { GradNode } from "../autograd/grad-node.js";
import { nodesBelow, savedBy } from "../autograd/returned.js";
import type { Tensor } from "../tensor/tensor.js";
import type { Storage } from "./storage.js";

/** Which tensors keep their memory, until they are disposed or collected as garbage. */
export class Handles {
  /** Tensors that were collected instead of being disposed. */
  leaked = 0;
  readonly #release: (storage: Storage) => void;
  readonly #registry: FinalizationRegistry<Storage>;
  readonly #tracked = new WeakSet<Tensor>();
  /** Nodes of graphs that steps were asked to keep. */
  readonly #keptNodes = new WeakSet<GradNode>();
  /** Tensors with a handle only because such nodes need them, and how many do. */
  readonly #saved = new WeakMap<Tensor, number>();
  /** Whether there ever were such nodes: most programs have none, and a backward pass asks for each node it has used. */
  #hasKept = false;

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
    if (this.#tracked.has(tensor)) {
      // Whoever asks for it now gives it back.
      this.#saved.delete(tensor);
      return tensor;
    }
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
    for (const node of nodesBelow(results)) {
      if (this.#keptNodes.has(node)) continue;
      this.#keptNodes.add(node);
      this.#hasKept = true;
      for (const tensor of savedBy(node)) this.#save(tensor);
    }
  }

  /** Gives back what is kept for this node and no other, of which a backward pass has made use. */
  releaseSaved(node: GradNode, onDrop: (undo: () => void) => void): void {
    if (!this.#hasKept || !this.#keptNodes.delete(node)) return;
    const saved = savedBy(node);
    for (const tensor of saved) this.#unsave(tensor);
    onDrop(() => {
      this.#keptNodes.add(node);
      for (const tensor of saved) if (!tensor.isDisposed) this.#save(tensor);
    });
  }

  #save(tensor: Tensor): void {
    const users = this.#saved.get(tensor);
    // What somebody else keeps is theirs.
    if (!users && this.#tracked.has(tensor)) return;
    if (!users) tensor.keep();
    this.#saved.set(tensor, (users ?? 0) + 1);
  }

  #unsave(tensor: Tensor): void {
    const users = this.#saved.get(tensor);
    if (!users) return;
    if (users > 1) this.#saved.set(tensor, users - 1);
    else {
      this.#saved.delete(tensor);
      this.untrack(tensor, tensor.storage);
    }
  }
}
