import type { Kernel } from "@halfstep/device";
import type { Recording } from "../record/recording.js";
import type { Storage } from "../record/storage.js";
import type { PassName } from "./pipeline.js";

/** Kernels are identified by their objects, not by their names. */
export type StructurePart = string | number | undefined | Kernel;

/** The properties that recordings must have in common to share a plan. */
export interface Structure {
  readonly parts: readonly StructurePart[];
  /** The residents that the recording uses, in the order of first appearance; they are not part of the structure. */
  readonly residents: readonly Storage[];
}

let structures = 0;

/**
 * The structure of a recording: kernels, storage, wiring, shapes and what is kept, but no runtime scalars and no addresses.
 * The whole is compared, not a hash.
 *
 * @param parts An array to write them to, instead of a new one.
 */
export function structureOf(
  recording: Recording,
  passes: readonly PassName[],
  parts: StructurePart[] = [],
): Structure {
  const { launches, inputs, kept, backwardStart } = recording;
  const own = ++structures;
  let numbers = 0;
  const residents: Storage[] = [];
  let length = 0;
  const add = (part: StructurePart): void => {
    parts[length++] = part;
  };
  const numberOf = (buffer: Storage): number => {
    if (buffer.structure === own) return buffer.number;
    buffer.structure = own;
    buffer.number = numbers++;
    if (buffer.isResident) residents.push(buffer);
    const role = buffer.isResident ? "resident" : kept.has(buffer) ? "kept" : "transient";
    add(role);
    add(buffer.hostData ? "given" : "made");
    add(buffer.byteLength);
    add(buffer.partStep);
    return buffer.number;
  };
  add(passes.join());
  add(backwardStart);
  for (const { kernel, bindings, scalars } of launches) {
    add(kernel);
    for (const binding of bindings) {
      add(numberOf(binding.buffer));
      add(binding.offset);
      add(binding.length);
      add(binding.dtype);
      add(binding.rounding);
    }
    for (const { name, runtime } of kernel.scalars) if (!runtime) add(scalars[name]);
  }
  for (const storage of inputs) {
    add("input");
    add(numberOf(storage));
  }
  for (const storage of kept) {
    add("keep");
    add(numberOf(storage));
  }
  parts.length = length;
  return { parts, residents };
}

/** Whether two recordings can share a plan. */
export function areEqual({ parts: a }: Structure, { parts: b }: Structure): boolean {
  if (a.length !== b.length) return false;
  // Object.is: NaN equals itself, and −0 differs from 0. Both may be scalars on which a plan depends.
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}
