import { OptimizerStateError } from "./errors.js";
import type { Segment } from "./flat-tensors.js";
import type { MomentFormat } from "./group-state.js";
import type { ParameterStorage } from "./parameter-storage.js";
import type { SavedArrays, SavedBuffer } from "./saved-buffer.js";

/** One parameter group as it is saved. */
export interface GroupStateDict {
  /** The group's options. A learning rate that is a schedule is a function, and not among them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Steps that were applied: skipped ones do not count. */
  readonly applied: number;
  /** How the parameters are kept. */
  readonly storage: ParameterStorage;
  /** How the moments are kept. */
  readonly moments: MomentFormat;
  /**
   * By parameter and name, in the parameter's own order: `state.weight.expAvg`. float32 and 16-bit floats are Float32Array,
   * remainders Uint16Array, and 8-bit moments Uint8Array codes with the Float32Array `expAvg.peaks`, one for each 256 elements.
   */
  readonly state: Readonly<Record<string, SavedArrays>>;
}

/** What an optimizer holds besides the parameters. */
export interface OptimizerStateDict {
  readonly algorithm: string;
  /** Of stochastic rounding. */
  readonly seed: number;
  readonly groups: readonly GroupStateDict[];
}

/** Cuts flat buffers into the state of each parameter. */
export const splitState = <B>(
  segments: readonly Segment[],
  buffers: readonly { readonly saved: SavedBuffer<B>; readonly values: ArrayLike<number> }[],
): GroupStateDict["state"] =>
  Object.fromEntries(
    segments.map((segment, index) => [
      segment.name,
      Object.assign({}, ...buffers.map(({ saved, values }) => saved.split(values, index))),
    ]),
  );

/**
 * What a flat buffer held, with zeros between parameters.
 *
 * @throws OptimizerStateError where a parameter is missing, unknown, or of another size.
 */
export function joinState<B>(
  segments: readonly Segment[],
  buffer: SavedBuffer<B>,
  state: GroupStateDict["state"],
): Float32Array | Uint32Array {
  const unknown = Object.keys(state).filter((own) => !segments.some((s) => s.name === own));
  if (unknown.length > 0)
    throw new OptimizerStateError(
      `the saved state has ${unknown.join(", ")}, which the optimizer does not: load it into the model that it was saved with`,
    );
  const { binding, length } = buffer;
  const { dtype } = binding;
  const values = dtype === "uint32" ? new Uint32Array(length) : new Float32Array(length);
  for (const [index, segment] of segments.entries())
    buffer.join(state[segment.name] ?? {}, index, values);
  return values;
}
