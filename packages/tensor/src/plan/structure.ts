import type { Recording } from "../recording.js";
import type { Storage } from "../storage.js";
import type { PassName } from "./plan.js";

/** What recordings must have in common to share a plan. */
export interface Structure {
  readonly parts: readonly (string | number | undefined)[];
  /** The residents that the recording uses, in the order of first appearance: they are none of its structure. */
  readonly residents: readonly Storage[];
}

/**
 * The structure of a recording: kernels, storage, wiring, shapes and what is kept, but no runtime scalars and no addresses.
 * The whole is compared, not a hash.
 */
export function structureOf(recording: Recording, passes: readonly PassName[]): Structure {
  const { launches, inputs, kept, backwardStart } = recording;
  const numbers = new Map<Storage, number>();
  const residents: Storage[] = [];
  const parts: (string | number | undefined)[] = [passes.join(), backwardStart];
  const numberOf = (buffer: Storage): number => {
    const known = numbers.get(buffer);
    if (known !== undefined) return known;
    const number = numbers.size;
    numbers.set(buffer, number);
    if (buffer.isResident) residents.push(buffer);
    const role = buffer.isResident ? "resident" : kept.has(buffer) ? "kept" : "transient";
    parts.push(role, buffer.hostData ? "given" : "made", buffer.byteLength);
    return number;
  };
  for (const { kernel, bindings, scalars } of launches) {
    parts.push(kernel.name, kernel.variant);
    for (const { buffer, offset, length, dtype, rounding } of bindings)
      parts.push(numberOf(buffer), offset, length, dtype, rounding);
    for (const { name, runtime } of kernel.scalars) if (!runtime) parts.push(scalars[name]);
  }
  for (const storage of inputs) parts.push("input", numberOf(storage));
  for (const storage of kept) parts.push("keep", numberOf(storage));
  return { parts, residents };
}

/** Whether two recordings can share a plan. */
export function areEqual({ parts: a }: Structure, { parts: b }: Structure): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
