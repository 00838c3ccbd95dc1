import type { Binding, Kernel, Launch } from "@halfstep/device";
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
  for (let i = 0; i < passes.length; i++) add(passes[i]);
  add(backwardStart);
  for (let i = 0; i < launches.length; i++) {
    const { kernel, bindings, scalars } = launches[i] as Launch<Storage>;
    add(kernel);
    for (let b = 0; b < bindings.length; b++) {
      const { buffer, offset, length, dtype, rounding } = bindings[b] as Binding<Storage>;
      add(numberOf(buffer));
      add(offset);
      add(length);
      add(dtype);
      add(rounding);
    }
    const names = plannedScalars(kernel);
    for (let s = 0; s < names.length; s++) add(scalars[names[s] as string]);
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

const planned = new WeakMap<Kernel, readonly string[]>();

/** The names of the scalars on which plans depend. */
function plannedScalars(kernel: Kernel): readonly string[] {
  let names = planned.get(kernel);
  if (!names) {
    names = kernel.scalars.flatMap(({ name, runtime }) => (runtime ? [] : [name]));
    planned.set(kernel, names);
  }
  return names;
}

/** Whether two recordings can share a plan. */
export function areEqual({ parts: a }: Structure, { parts: b }: Structure): boolean {
  if (a.length !== b.length) return false;
  // Object.is: NaN equals itself, and −0 differs from 0. Both may be scalars on which a plan depends.
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}
