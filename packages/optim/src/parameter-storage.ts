import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import type { ParameterKind } from "@halfstep/kernels/optimizers";
import { type FlatTensors, flatLength, type Segment } from "./flat-tensors.js";
import { elementsAt, halvesAt, type SavedBuffer } from "./saved-buffer.js";

/**
 * How parameters are kept. Arithmetic is float32 in all of them, and groups of float32 values are always kept as they are,
 * whatever the storage of others.
 *
 * - `"float32"`: float32 values, updated in place.
 * - `"master"`: 16-bit values with float32 masters, which the optimizer holds and updates; each step rounds them into the
 *   values once. 4 bytes more for each parameter.
 * - `"remainder"`: bfloat16 values with the 16 bits that they lack of a float32: the same numbers as float32 training, bit for
 *   bit. 2 bytes more.
 * - `"kahan"`: 16-bit values with a 16-bit compensation, what rounding them has lost so far. 2 bytes more.
 * - `"stochastic"`: bfloat16 values, rounded up or down at random so that updates are right on average. Nothing more.
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
  /** By the names that kernels use. */
  readonly buffers: Readonly<Record<string, Binding<B>>>;
  readonly saved: readonly SavedBuffer<B>[];
}

/** The storage that a group gets. Throws a TypeError where its values have another dtype than the storage is for. */
export function storageOf<B>(
  { dtype, segments }: FlatTensors<B>,
  storage: ParameterStorage | undefined,
): ParameterStorage {
  // A model may keep some parameters in float32 (batch norm): those need nothing under any storage.
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
  { dtype, segments }: FlatTensors<B>,
  name: ParameterStorage,
): ResidentStorage<B> {
  const length = flatLength(segments);
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
