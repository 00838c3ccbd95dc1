import {
  type Binding,
  checkLaunch,
  checkSharing,
  type Kernel,
  type KernelView,
  type Launch,
  type LaunchTarget,
} from "@halfstep/device";
import { roundArray } from "@halfstep/formats";
import {
  bytesFor,
  decodeElements,
  dtypes,
  elementsIn,
  encodeElements,
  isInteger,
  isNarrow,
  storeElements,
} from "@halfstep/formats/dtypes";
import { CpuMemoryError } from "./cpu-memory-error.js";
import type { DefinedKernel } from "./kernel.js";

/** Memory of the CPU target. With float64 arithmetic every element is stored as a float64, regardless of its dtype. */
export interface CpuBuffer {
  readonly byteLength: number;
  readonly bytes: ArrayBuffer;
  /** One float64 for each byte, so that an element of any dtype has a place of its own. */
  readonly wide: Float64Array | undefined;
}

/** Options of {@link cpuTarget}. */
export interface CpuTargetOptions {
  /** "float64" rounds nothing: for gradient checks. Default "float32": storage is rounded exactly as on a GPU. */
  readonly arithmetic?: "float32" | "float64";
}

/** The bytes of a buffer on the host, where float64 arithmetic takes more. */
const bytesOf = (byteLength: number, arithmetic: CpuTarget["arithmetic"]): number =>
  arithmetic === "float64" ? byteLength * Float64Array.BYTES_PER_ELEMENT : byteLength;

/** Runs each launch at once through its kernel's `reference()`. */
export interface CpuTarget extends LaunchTarget<CpuBuffer> {
  readonly arithmetic: "float32" | "float64";
  /** Zeroed memory. @throws CpuMemoryError where the process has no room for it */
  allocate(bytes: number): CpuBuffer;
  /** Copies elements into a buffer, encoded as the binding's `dtype`. */
  write(binding: Binding<CpuBuffer>, values: ArrayLike<number>): void;
  /** The elements of a binding, decoded. */
  read(binding: Binding<CpuBuffer>): KernelView;
}

/** A launch target that runs each kernel's `reference()` at once, on the host. */
export function cpuTarget(options: CpuTargetOptions = {}): CpuTarget {
  const { arithmetic = "float32" } = options;
  return {
    arithmetic,
    allocate(bytes) {
      const byteLength = Math.ceil(bytes / 16) * 16;
      try {
        return arithmetic === "float64"
          ? { byteLength, bytes: new ArrayBuffer(0), wide: new Float64Array(byteLength) }
          : { byteLength, bytes: new ArrayBuffer(byteLength), wide: undefined };
      } catch (cause) {
        throw new CpuMemoryError(bytesOf(byteLength, arithmetic), { cause });
      }
    },
    launch: runOnCpu,
    write(binding, values) {
      const view = openView(binding);
      const { dtype } = binding;
      view.set(isInteger(dtype) ? encodeElements(values, dtype) : values);
      closeView(binding, view);
    },
    read: (binding) => openView(binding).slice(),
  };
}

/** Interprets one launch with its kernel's reference. */
function runOnCpu(launch: Launch<CpuBuffer>): void {
  checkLaunch(launch);
  const { kernel, bindings, scalars } = launch;
  checkSharing(kernel, bindings);
  const views = bindings.map((binding, index) => {
    const access = kernel.bindings[index]?.access;
    const view = openView(binding);
    // A cast folded into a load rounds a copy: the buffer itself is unchanged.
    if (access !== "read" || !binding.rounding || binding.buffer.wide) return view;
    return roundArray(view, dtypes[binding.rounding].format, new Float32Array(view.length));
  });
  kernel.reference(views, scalars);
  const observed = observedViews(kernel, views);
  for (const [index, binding] of bindings.entries())
    if (kernel.bindings[index]?.access !== "read") closeView(binding, views[index] as KernelView);
  for (const { observer, result, index, before } of observed) {
    const after = openView(bindings[index] as Binding<CpuBuffer>);
    observer.reference(before, after, views.at(-1) as KernelView, scalars, result);
  }
}

/** The results of a kernel with observed stores, before storage rounds them. */
function observedViews(
  { observed, bindings }: Kernel & Partial<DefinedKernel>,
  views: readonly KernelView[],
) {
  if (!observed) return [];
  const { observer, results } = observed;
  return results.map((result) => {
    const index = bindings.findIndex(({ name }) => name === result);
    return { observer, result, index, before: (views[index] as KernelView).slice() };
  });
}

function openView({ buffer, offset, length, dtype }: Binding<CpuBuffer>): KernelView {
  const end = offset + bytesFor(dtype, length);
  if (end > buffer.byteLength)
    throw new RangeError(
      `a binding of ${length} ${dtype} at byte ${offset} ends past its buffer of ${buffer.byteLength} bytes`,
    );
  if (buffer.wide) {
    const start = elementsIn(dtype, offset);
    return buffer.wide.subarray(start, start + length);
  }
  return decodeElements(buffer.bytes, dtype, length, offset);
}

/** Rounds what is in an open view, and stores it unless the view is the memory itself. */
function closeView(binding: Binding<CpuBuffer>, view: KernelView): void {
  const { buffer, offset, dtype, rounding } = binding;
  if (buffer.wide) return;
  if (rounding) roundArray(view as Float32Array, dtypes[rounding].format, view as Float32Array);
  if (isNarrow(dtype)) storeElements(view, dtype, buffer.bytes, offset);
}
