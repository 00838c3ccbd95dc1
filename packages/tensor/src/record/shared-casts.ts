import type { DType } from "@halfstep/device";
import { isSameShape } from "../shapes.js";
import type { RecordedTensor } from "./recorded-tensor.js";
import type { Storage } from "./storage.js";

/** The kind of a cast: differentiable, without gradient, or the half copy that an optimizer keeps. */
type Way = "differentiable" | "plain" | "copy";

/** A tensor that is cast. */
export interface CastTensor extends RecordedTensor {
  /** Version of the elements; each write changes it. */
  readonly version: number;
}

interface SharedCast {
  readonly way: Way;
  readonly dtype: DType;
  readonly storage: Storage;
  readonly offset: number;
  readonly shape: readonly number[];
  /** Version of the elements when they were cast. */
  readonly version: number;
  readonly result: CastTensor;
}

/** Casts that a recording has made, each to be used again for the same version of the same elements. */
export class SharedCasts {
  /**
   * Casts by tensor; casts without gradient by storage, because all its tensors share them. Lists are replaced, not changed.
   */
  #casts: Map<CastTensor | Storage, readonly SharedCast[]> = new Map();

  get<T extends CastTensor>(tensor: T, dtype: DType, way: Way): T | undefined {
    const casts = this.#casts.get(keyOf(tensor, way));
    if (!casts) return undefined;
    const { storage, offset, shape, version } = tensor;
    return casts.findLast(
      (cast) =>
        cast.way === way &&
        cast.dtype === dtype &&
        cast.storage === storage &&
        cast.offset === offset &&
        cast.version === version &&
        isSameShape(cast.shape, shape),
    )?.result as T | undefined;
  }

  /** Casts are tensors of the same class as their sources. */
  set<T extends CastTensor>(tensor: T, dtype: DType, way: Way, result: T): void {
    const { storage, offset, shape, version } = tensor;
    const key = keyOf(tensor, way);
    const before = this.#casts.get(key);
    const cast: SharedCast = { way, dtype, storage, offset, shape, version, result };
    this.#casts.set(key, before ? [...before, cast] : [cast]);
  }

  /** A copy of these casts, which later additions do not change. */
  snapshot(): SharedCasts {
    const snapshot = new SharedCasts();
    snapshot.#casts = new Map(this.#casts);
    return snapshot;
  }

  /** Runs `fn` with the casts of a snapshot, and restores its own afterwards. */
  during(snapshot: SharedCasts, fn: () => void): void {
    const own = this.#casts;
    this.#casts = new Map(snapshot.#casts);
    try {
      fn();
    } finally {
      this.#casts = own;
    }
  }

  clear(): void {
    this.#casts.clear();
  }
}

const keyOf = (tensor: CastTensor, way: Way): CastTensor | Storage =>
  way === "plain" ? tensor.storage : tensor;
