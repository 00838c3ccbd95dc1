import { OptimizerStateError } from "./errors.js";
import { type Segment, segmentLength } from "./flat-tensors.js";

/** One parameter group as it is saved. */
export interface GroupStateDict {
  /** The group's options. A learning rate that is a schedule is a function, and not among them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Steps that were applied: skipped ones do not count. */
  readonly applied: number;
  /** By parameter and name: `state.weight.expAvg`, float32, in the parameter's own order. */
  readonly state: Readonly<Record<string, Readonly<Record<string, Float32Array>>>>;
}

/** What an optimizer holds besides the parameters. */
export interface OptimizerStateDict {
  readonly algorithm: string;
  readonly groups: readonly GroupStateDict[];
}

/** Cuts flat buffers into the state of each parameter. */
export function splitState(
  segments: readonly Segment[],
  buffers: Readonly<Record<string, ArrayLike<number>>>,
): GroupStateDict["state"] {
  const cut = (segment: Segment): Record<string, Float32Array> =>
    Object.fromEntries(
      Object.entries(buffers).map(([name, values]) => {
        const from = segment.offset;
        const own = Float32Array.from(
          { length: segmentLength(segment) },
          (_, i) => values[from + i] as number,
        );
        return [name, own];
      }),
    );
  return Object.fromEntries(segments.map((segment) => [segment.name, cut(segment)]));
}

/**
 * The flat buffer of one kind of state, with zeros between parameters.
 *
 * @throws OptimizerStateError where a parameter is missing, unknown, or of another size.
 */
export function joinState(
  segments: readonly Segment[],
  length: number,
  state: GroupStateDict["state"],
  name: string,
): Float32Array {
  const unknown = Object.keys(state).filter((own) => !segments.some((s) => s.name === own));
  if (unknown.length > 0)
    throw new OptimizerStateError(
      `the saved state has ${unknown.join(", ")}, which the optimizer does not: load it into the model that it was saved with`,
    );
  const values = new Float32Array(length);
  for (const segment of segments) {
    const saved = state[segment.name]?.[name];
    if (!saved)
      throw new OptimizerStateError(
        `the saved state has no ${name} for ${segment.name}: it comes from another model or from other options`,
      );
    if (saved.length !== segmentLength(segment))
      throw new OptimizerStateError(
        `${name} of ${segment.name} has ${saved.length} elements, but the parameter is [${segment.shape}]: ` +
          "load the state into the model that it was saved with",
      );
    values.set(saved, segment.offset);
  }
  return values;
}
