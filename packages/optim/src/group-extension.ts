import type { Binding } from "@halfstep/device";
import type { ResidentTarget } from "@halfstep/kernels";
import type { UpdateRange } from "@halfstep/kernels/optimizers";
import type { FlatTensors } from "./flat-tensors.js";
import type { SavedBuffer } from "./saved-buffer.js";

/** The arguments of an extension's launches in a step. */
export interface ExtensionStep<B, H> {
  readonly options: H;
  readonly gradients: Binding<B>;
  readonly control: Binding<B>;
  /** State of the rule, by name. */
  readonly state: Readonly<Record<string, Binding<B>>>;
  readonly ranges: readonly UpdateRange[];
}

/** Launches and buffers of one group that are not elementwise: factored moments, products of matrices. */
export interface GroupExtension<B, H> {
  /** Inputs of the rule's passes, by name; called after {@link before}. */
  inputs(options: H): Readonly<Record<string, Binding<B>>>;
  readonly saved: readonly SavedBuffer<B>[];
  /** Launches before the first pass. */
  before?(step: ExtensionStep<B, H>): void;
  /** Launches after pass `index` and its totals. */
  after?(index: number, step: ExtensionStep<B, H>): void;
}

/** Makes the extension of a group. Throws a TypeError where its parameters do not suit the optimizer. */
export type MakeExtension<H> = <B>(
  target: ResidentTarget<B>,
  params: FlatTensors<B>,
) => GroupExtension<B, H>;
