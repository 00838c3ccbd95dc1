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
  for (const { kernel, bindings, scalars } of recording.launches) {
    parts.push(";", kernel.name, kernel.variant);
    for (const { buffer, offset, length, dtype, rounding } of bindings) {
      let number = numbers.get(buffer);
      if (number === undefined) {
        number = numbers.size;
        numbers.set(buffer, number);
        const role = buffer.isResident ? "r" : recording.kept.has(buffer) ? "k" : "t";
        parts.push(role, buffer.hostData ? "h" : "", buffer.byteLength);
      }
      parts.push("#", number, offset, length, dtype, rounding ?? "");
    }
    for (const { name, runtime } of kernel.scalars)
      if (!runtime) parts.push(scalars[name] as number);
  }
  for (const storage of recording.kept) parts.push("k", numbers.get(storage) ?? storage.byteLength);
  for (const storage of recording.inputs) parts.push("i", numbers.get(storage) ?? -1);
  return parts.join(" ");
}
