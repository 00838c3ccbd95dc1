import type { HeldTensor } from "./recorded-tensor.js";
import type { Storage } from "./storage.js";

/** The tensors that keep their memory until they are disposed or collected as garbage. */
export class Handles<T extends HeldTensor> {
  /** Tensors that were collected instead of being disposed. */
  leaked = 0;
  readonly #release: (storage: Storage) => void;
  readonly #registry: FinalizationRegistry<Storage>;
  readonly #tracked = new WeakSet<T>();
  /** Users for which tensors are kept: nodes of graphs that steps were asked to keep. */
  readonly #users = new WeakSet<object>();
  /** Tensors with a handle only because users need them, and the number of users. */
  readonly #saved = new WeakMap<T, number>();
  /**
   * Whether there ever were users. Most programs have none; this flag saves a look-up for each node of a backward pass.
   */
  #hasUsers = false;

  /** @param release called when the last handle of memory is gone. */
  constructor(release: (storage: Storage) => void) {
    this.#release = release;
    this.#registry = new FinalizationRegistry((storage) => {
      this.leaked++;
      this.drop(storage);
    });
  }

  /** Makes a tensor keep its memory until it is disposed. */
  track<U extends T>(tensor: U): U {
    if (this.#tracked.has(tensor)) {
      // The new owner of the handle disposes it.
      this.#saved.delete(tensor);
      return tensor;
    }
    this.#tracked.add(tensor);
    tensor.storage.handles++;
    this.#registry.register(tensor, tensor.storage, tensor);
    return tensor;
  }

  untrack(tensor: T, storage: Storage): void {
    if (!this.#tracked.delete(tensor)) return;
    this.#registry.unregister(tensor);
    this.drop(storage);
  }

  /** Removes one handle of a storage. */
  drop(storage: Storage): void {
    storage.handles--;
    if (storage.handles <= 0) this.#release(storage);
  }

  /** Keeps tensors for a user, until it releases them. */
  keepFor(user: object, tensors: () => readonly T[]): void {
    if (this.#users.has(user)) return;
    this.#users.add(user);
    this.#hasUsers = true;
    for (const tensor of tensors()) this.#save(tensor);
  }

  /** Releases the tensors that are kept for this user alone. */
  releaseFor(user: object, tensors: () => readonly T[], onDrop: (undo: () => void) => void): void {
    if (!this.#hasUsers || !this.#users.delete(user)) return;
    const saved = tensors();
    for (const tensor of saved) this.#unsave(tensor);
    onDrop(() => {
      this.#users.add(user);
      for (const tensor of saved) if (!tensor.isDisposed) this.#save(tensor);
    });
  }

  #save(tensor: T): void {
    const users = this.#saved.get(tensor);
    // A tensor with a handle of its own belongs to the program.
    if (!users && this.#tracked.has(tensor)) return;
    if (!users) tensor.keep();
    this.#saved.set(tensor, (users ?? 0) + 1);
  }

  #unsave(tensor: T): void {
    const users = this.#saved.get(tensor);
    if (!users) return;
    if (users > 1) this.#saved.set(tensor, users - 1);
    else {
      this.#saved.delete(tensor);
      this.untrack(tensor, tensor.storage);
    }
  }
}
