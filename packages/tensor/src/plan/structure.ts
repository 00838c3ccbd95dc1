import type { Recording } from "../recording.js";
import type { Storage } from "../storage.js";
import type { PassName } from "./plan.js";

/**
 * The structure of a recording as text: kernels, storage, wiring, shapes and what is kept, but no runtime scalars and no
 * addresses. Recordings of equal structure share a plan; the whole text is compared, not a hash.
 */
export function structureOf(recording: Recording, passes: readonly PassName[]): string {
  const numbers = new Map<Storage, number>();
  const parts: (string | number)[] = [passes.join(), recording.backwardStart ?? -1];
  const numberOf = (buffer: Storage): number => {
    const known = numbers.get(buffer);
    if (known !== undefined) return known;
    const number = numbers.size;
    numbers.set(buffer, number);
    const role = buffer.isResident ? "r" : recording.kept.has(buffer) ? "k" : "t";
    parts.push(role, buffer.hostData ? "h" : "", buffer.byteLength);
    return number;
  };
  for (const { kernel, bindings, scalars } of recording.launches) {
    parts.push(";", kernel.name, kernel.variant);
    for (const { buffer, offset, length, dtype, rounding } of bindings) {
      const number = numberOf(buffer);
      parts.push("#", number, offset, length, dtype, rounding ?? "");
    }
    for (const { name, runtime } of kernel.scalars)
      if (!runtime) parts.push(scalars[name] as number);
  }
  for (const storage of recording.inputs) {
    const number = numberOf(storage);
    parts.push("i", number);
  }
  for (const storage of recording.kept) {
    const number = numberOf(storage);
    parts.push("k", number);
  }
  return parts.join(" ");
}
