import {
  type Binding,
  bytesPerElement,
  checkLaunch,
  type DType,
  type Float8DType,
  type HalfDType,
  isFloat8,
  type Kernel,
  type KernelView,
  type Launch,
  type LaunchTarget,
} from "@halfstep/device";
import {
  bfloat16,
  decodeArray,
  encodeArray,
  type FloatFormat,
  float8e4m3fn,
  float8e5m2,
  float16,
  roundArray,
} from "@halfstep/formats";
import { integersOf } from "./domain.js";
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

/** Runs each launch at once through its kernel's `reference()`. */
export interface CpuTarget extends LaunchTarget<CpuBuffer> {
  readonly arithmetic: "float32" | "float64";
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
      return arithmetic === "float64"
        ? { byteLength, bytes: new ArrayBuffer(0), wide: new Float64Array(byteLength) }
        : { byteLength, bytes: new ArrayBuffer(byteLength), wide: undefined };
    },
    launch: runOnCpu,
    write(binding, values) {
      const view = openView(binding);
      const { dtype } = binding;
      view.set(dtype === "int32" || dtype === "uint32" ? integersOf(values, dtype) : values);
      closeView(binding, view);
    },
    read: (binding) => openView(binding).slice(),
  };
}

/** Interprets one launch with its kernel's reference. */
function runOnCpu(launch: Launch<CpuBuffer>): void {
  checkLaunch(launch);
  const { kernel, bindings, scalars } = launch;
  const views = bindings.map((binding, index) => {
    const access = kernel.bindings[index]?.access;
    const view = openView(binding);
    // A cast folded into a load rounds a copy: the buffer itself is unchanged.
    if (access !== "read" || !binding.rounding || binding.buffer.wide) return view;
    return roundArray(view, formatOf(binding.rounding), new Float32Array(view.length));
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

/** The format of a dtype that is narrower than its decoded elements. */
export function formatOf(dtype: HalfDType | Float8DType): FloatFormat {
  if (dtype === "float16") return float16;
  if (dtype === "bfloat16") return bfloat16;
  return dtype === "float8e4m3fn" ? float8e4m3fn : float8e5m2;
}

/** The elements of a narrow dtype in a buffer, as codes. */
export const codesOf = (
  bytes: ArrayBuffer,
  offset: number,
  length: number,
  dtype: DType,
): Uint8Array | Uint16Array =>
  isFloat8(dtype) ? new Uint8Array(bytes, offset, length) : new Uint16Array(bytes, offset, length);

function openView({ buffer, offset, length, dtype }: Binding<CpuBuffer>): KernelView {
  const end = offset + length * bytesPerElement(dtype);
  if (end > buffer.byteLength)
    throw new RangeError(
      `a binding of ${length} ${dtype} at byte ${offset} ends past its buffer of ${buffer.byteLength} bytes`,
    );
  if (buffer.wide) {
    const start = offset / bytesPerElement(dtype);
    return buffer.wide.subarray(start, start + length);
  }
  switch (dtype) {
    case "float32":
      return new Float32Array(buffer.bytes, offset, length);
    case "int32":
      return new Int32Array(buffer.bytes, offset, length);
    case "uint32":
      return new Uint32Array(buffer.bytes, offset, length);
    default:
      return decodeArray(codesOf(buffer.bytes, offset, length, dtype), formatOf(dtype));
  }
}

function closeView(binding: Binding<CpuBuffer>, view: KernelView): void {
  const { buffer, offset, length, dtype, rounding } = binding;
  if (buffer.wide) return;
  if (rounding) roundArray(view as Float32Array, formatOf(rounding), view as Float32Array);
  if (dtype === "float32" || dtype === "int32" || dtype === "uint32") return;
  const codes = codesOf(buffer.bytes, offset, length, dtype);
  encodeArray(view as Float32Array, formatOf(dtype), codes, { saturate: isFloat8(dtype) });
}
