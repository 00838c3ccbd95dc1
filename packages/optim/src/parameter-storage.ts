import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import type { ParameterKind } from "@halfstep/kernels/optimizers";
import type { FlatTensors, Segment } from "./flat-tensors.js";
import { ownLength } from "./own-parts.js";
import { elementsAt, halvesAt, type SavedBuffer } from "./saved-buffer.js";

/**
 * The storage of parameters. Arithmetic is always float32, and groups of float32 values are always stored in float32,
 * independent of this option.
 *
 * - `"float32"`: float32 values, updated in place.
 * - `"master"`: 16-bit values with float32 masters, which the optimizer stores and updates; each step rounds them into the
 *   values once. Takes 4 more bytes for each parameter.
 * - `"remainder"`: bfloat16 values with the remaining 16 bits of a float32: the same numbers as float32 training, bit for bit.
 *   Takes 2 more bytes.
 * - `"kahan"`: 16-bit values with a 16-bit compensation, the accumulated rounding error. Takes 2 more bytes.
 * - `"stochastic"`: bfloat16 values with stochastic rounding, so that updates are correct on average. Takes no more memory.
 * - `"plain"`: 16-bit values, rounded to nearest. Updates below half a unit in the last place are lost: training usually
 *   stalls. For comparisons.
 */
export type ParameterStorage = (typeof parameterStorages)[number];

export const parameterStorages = [
  "float32",
  "master",
  "remainder",
  "kahan",
  "stochastic",
  "plain",
] as const;

/** The storage of one group on a target. */
export interface ResidentStorage<B> {
  readonly name: ParameterStorage;
  readonly kind: ParameterKind;
  /** Buffers by the names that kernels use. */
  readonly buffers: Readonly<Record<string, Binding<B>>>;
  readonly saved: readonly SavedBuffer<B>[];
}

/** The storage of a group. Throws a TypeError where the storage does not support the dtype of its values. */
export function storageOf<B>(
  { dtype, segments }: FlatTensors<B>,
  storage: ParameterStorage | undefined,
): ParameterStorage {
  // A model may keep some parameters in float32 (batch norm), which need no further storage.
  if (dtype === "float32") return "float32";
  const first = segments[0]?.name ?? "the buffer";
  if (storage === "float32")
    throw new TypeError(
      `storage is "float32", but ${first} is stored as ${dtype}: use "master", or "plain" to go without masters`,
    );
  if (dtype === "float16" && (storage === "remainder" || storage === "stochastic"))
    throw new TypeError(
      `storage "${storage}" is for bfloat16 values, but ${first} is stored as float16: use "master" or "kahan"`,
    );
  return storage ?? "master";
}

export function residentStorage<B>(
  target: ResidentTarget<B>,
  params: FlatTensors<B>,
  name: ParameterStorage,
): ResidentStorage<B> {
  const { dtype, segments } = params;
  const length = ownLength(params);
  const buffer = (of: Binding<B>["dtype"], elements: number): Binding<B> => ({
    buffer: allocateResident(target, bytesFor(of, Math.max(elements, 1))),
    offset: 0,
    length: elements,
    dtype: of,
  });
  const one = (
    kind: ParameterKind,
    key: string,
    binding: Binding<B>,
    saved: (name: string, binding: Binding<B>, segments: readonly Segment[]) => SavedBuffer<B>,
  ): ResidentStorage<B> => ({
    name,
    kind,
    buffers: { [key]: binding },
    saved: [saved(key, binding, segments)],
  });
  switch (name) {
    case "float32":
    case "plain":
      return { name, kind: "inPlace", buffers: {}, saved: [] };
    case "stochastic":
      return { name, kind: "stochastic", buffers: {}, saved: [] };
    case "master":
      return one("master", "master", buffer("float32", length), elementsAt);
    case "remainder":
      return one("remainder", "remainder", buffer("uint32", Math.ceil(length / 4) * 2), halvesAt);
    case "kahan": {
      const kind = dtype === "float16" ? "kahanFloat16" : "kahanBfloat16";
      return one(kind, "compensation", buffer(dtype, length), elementsAt);
    }
  }
}
