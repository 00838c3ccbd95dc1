import type { Launch } from "@halfstep/device";
import { described } from "../arguments/arguments.js";
import { ArgumentError, RecordingError, ShapeError } from "../errors.js";
import type { Storage } from "../record/storage.js";
import type { Tensor } from "../tensor/tensor.js";

/**
 * Checks what the `shape` of an op returned: shape and dtype of each result.
 *
 * @throws ArgumentError for what is no list of them
 * @throws ShapeError for sizes that are no whole numbers
 */
export function checkSpecs(op: string, specs: unknown): void {
  if (!Array.isArray(specs) || specs.length === 0)
    throw new ArgumentError(
      `${op}: shape gave ${described(specs)}: return a list with { shape, dtype } of each result`,
    );
  for (let i = 0; i < specs.length; i++) checkSpec(op, i, specs[i]);
}

function checkSpec(op: string, i: number, spec: unknown): void {
  const { shape, dtype } = Object(spec) as { readonly shape?: unknown; readonly dtype?: unknown };
  if (!Array.isArray(shape) || typeof dtype !== "string")
    throw new ArgumentError(
      `${op}: shape gave ${described(spec)} for result ${i}: return { shape, dtype }`,
    );
  for (let d = 0; d < shape.length; d++)
    if (!(Number.isInteger(shape[d]) && shape[d] >= 0))
      throw new ShapeError(`${op}: shape gave the sizes [${shape}] for result ${i}`);
}

/**
 * Checks that the launches of an op write each of its results: memory that nothing writes holds what was there before.
 *
 * @throws RecordingError for a result that no launch writes
 * @throws ArgumentError where `forward` returned a promise, whose launches would come too late
 */
export function checkWritten(
  op: string,
  returned: unknown,
  launches: readonly Launch<Storage>[],
  first: number,
  outputs: readonly Tensor[],
): void {
  if (typeof (returned as PromiseLike<unknown> | undefined)?.then === "function")
    throw new ArgumentError(
      `${op}: forward returned a promise: append all launches before it returns`,
    );
  for (let i = 0; i < outputs.length; i++) {
    const { size, storage } = outputs[i] as Tensor;
    if (size > 0 && !isWritten(storage, launches, first))
      throw new RecordingError(`${op}: forward appended no launch that writes result ${i}`);
  }
}

function isWritten(storage: Storage, launches: readonly Launch<Storage>[], first: number): boolean {
  for (let n = launches.length - 1; n >= first; n--) {
    const { kernel, bindings } = launches[n] as Launch<Storage>;
    for (let b = bindings.length - 1; b >= 0; b--)
      if (bindings[b]?.buffer === storage && kernel.bindings[b]?.access !== "read") return true;
  }
  return false;
}
