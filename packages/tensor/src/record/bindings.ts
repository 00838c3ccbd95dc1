import type { Binding, DType, KernelBinding, Launch } from "@halfstep/device";
import { bytesFor, floatingDTypes } from "@halfstep/formats/dtypes";
import { isHostBinding } from "./host-op.js";
import type { Storage } from "./storage.js";

/**
 * True where WebGPU refuses a launch: it forbids one dispatch to read a buffer and to write it, even in disjoint ranges, and
 * to write a range through two bindings.
 */
export function hasConflict({ kernel, bindings }: Launch<Storage>): boolean {
  const isWritten = (b: number): boolean => kernel.bindings[b]?.access !== "read";
  return bindings.some(
    (one, a) =>
      isWritten(a) &&
      bindings.some(
        (other, b) =>
          a !== b &&
          other.buffer === one.buffer &&
          (!isWritten(b) || (a < b && overlaps(one, other))),
      ),
  );
}

/** True where two bindings of one buffer share bytes. */
export function overlaps(a: Binding<Storage>, b: Binding<Storage>): boolean {
  const endOf = ({ offset, length, dtype }: Binding<Storage>): number =>
    offset + bytesFor(dtype, length);
  return a.offset < endOf(b) && b.offset < endOf(a);
}

/** Storage buffers per stage that every WebGPU device supports; a fused kernel uses at most as many. */
export const maxBindings = 8;

/** Whether a kernel takes other storage, of this dtype, for one of its bindings. A function of the host takes what was recorded. */
export function accepts(parameter: KernelBinding | undefined, dtype: DType): boolean {
  if (!parameter || isHostBinding(parameter)) return false;
  const { dtypes = floatingDTypes, unit = 4, access } = parameter;
  if (!dtypes.includes(dtype)) return false;
  // A store fills whole words.
  return access === "read" || bytesFor(dtype, unit) >= 4;
}
