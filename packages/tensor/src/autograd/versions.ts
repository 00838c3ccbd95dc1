import { bytesFor } from "@halfstep/formats/dtypes";
import { elementwise, identity } from "@halfstep/kernels";
import { RecordingError } from "../errors.js";
import type { WriteEvent } from "../record/storage.js";
import type { Tensor } from "../tensor/tensor.js";

/** The first write to a tensor after a time of its runtime's clock. */
export const writeSince = (
  { storage, offset, dtype, size }: Tensor,
  clock: number,
): WriteEvent | undefined => storage.firstWriteSince(clock, offset, offset + bytesFor(dtype, size));

/** A tensor as it was at an earlier time of the clock: itself, or a copy from before the write that replaced it. */
export function versionAt(tensor: Tensor, clock: number, forHigherDerivative: boolean): Tensor {
  const { runtime, shape, dtype } = tensor;
  const write = writeSince(tensor, clock);
  if (!write) return tensor;
  const { name = `a tensor of shape [${shape}]` } = tensor as { readonly name?: string };
  if (write.recording !== runtime.recording || forHigherDerivative)
    throw new RecordingError(
      `backward() needs ${name} at version ${clock}, but it was assigned since and has version ${write.clock}: ` +
        "call backward() before the assignment",
    );
  const copy = runtime.recorder.result(shape, dtype);
  runtime.recording.insert(write.index, elementwise(identity, [tensor.operand()], copy.operand()));
  return copy;
}
