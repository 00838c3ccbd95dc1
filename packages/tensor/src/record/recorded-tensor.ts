import type { DType } from "@halfstep/device";
import type { Placement } from "./storage.js";

/** A tensor as a recording uses it: the place and the dtype of its elements. */
export interface RecordedTensor extends Placement {
  readonly shape: readonly number[];
  readonly dtype: DType;
  /** Number of elements. */
  readonly size: number;
  /** The name, if it has one. */
  readonly name?: string;
}

/** A tensor whose memory a recorder keeps and releases. */
export interface HeldTensor extends RecordedTensor {
  readonly isDisposed: boolean;
  /** Keeps the tensor alive after the step that makes it. */
  keep(): unknown;
  /** @throws ClosedTensorError where its elements were freed */
  assertUsable(): void;
}

/** Makes a tensor at a place. */
export type MakeTensor<T> = (place: Placement, shape: readonly number[], dtype: DType) => T;
