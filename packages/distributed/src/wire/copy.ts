import type { Breath } from "./breath.js";
import { pieces } from "./scatter-mean.js";

/** Copies numbers of one type to the start of `to`. The event loop runs in between: the first touch of new memory is slow. */
export async function copyTo<T extends Uint8Array | Uint16Array | Float32Array>(
  to: T,
  from: T,
  breath: Breath,
): Promise<void> {
  for (const { offset, count } of pieces(from.length)) {
    to.set(from.subarray(offset, offset + count), offset);
    await breath.after(count);
  }
}
