import type { DType } from "@halfstep/device";
import type { Placement } from "./storage.js";

/** What a recording knows of a tensor: where its elements lie, and as what. */
export interface RecordedTensor extends Placement {
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** Number of elements. */
  readonly size: number;
  /** What people call it, if it has a name. */
  readonly name?: string;
}

/** A tensor whose memory a recorder keeps, or gives back. */
export interface HeldTensor extends RecordedTensor {
  readonly isDisposed: boolean;
  /** Keeps the tensor alive after the step that makes it. */
  keep(): unknown;
  /** @throws ClosedTensorError where its elements are gone */
  assertUsable(): void;
}

/** Makes a tensor at a place. */
export type MakeTensor<T> = (place: Placement, shape: readonly number[], dtype: DType) => T;
