import {
  type Binding,
  bytesPerElement,
  type Device,
  type DType,
  isFloat8,
  type KernelView,
  type LaunchTarget,
} from "@halfstep/device";
import { decodeArray, encodeArray } from "@halfstep/formats";
import { codesOf, formatOf } from "./cpu.js";
import { integersOf } from "./domain.js";

/**
 * Where optimizers and loss scalers live: launches, and memory that outlives a step and that the host fills and reads.
 * `cpuTarget()` is one, {@link deviceTarget} makes one of a device, and so can a recorder.
 */
export interface ResidentTarget<B> extends LaunchTarget<B> {
  /** A zeroed buffer that outlives the recording in which it is made. Absent where `allocate` gives such buffers. */
  allocateResident?(bytes: number): B;
  /** Copies elements into a buffer, as its dtype stores them, after what was launched before and before what follows. */
  write(binding: Binding<B>, values: ArrayLike<number>): void;
  /**
   * The decoded elements of a binding, after everything that was launched before. A read that no step waits for says
   * `wait: "background"`, and is not counted as a wait of the host.
   */
  read(
    binding: Binding<B>,
    options?: { readonly wait?: "host" | "background" },
  ): KernelView | Promise<KernelView>;
  /**
   * Calls `update`, whose launches update the parameters `values` in place. A target that keeps copies of parameters, rounded to 16 bits,
   * brings them up to date. Absent where there are none.
   */
  updateParameters?(values: Binding<B>, update: () => void): void;
  /** Where launches can be dropped before they run: calls `undo` when that happens to those made so far. */
  onRollback?(undo: () => void): void;
}

/** A target on a bare device: launches are encoded as they come and run at `submit()`, or before a read or write. */
export interface DeviceTarget extends ResidentTarget<GPUBuffer> {
  submit(): void;
}

/** A launch target on a device, with memory that stays: for optimizers and scalers without a runtime. */
export function deviceTarget(device: Device): DeviceTarget {
  const encoder = device.encoder();
  return {
    launch: (launch) => encoder.launch(launch),
    allocate: (bytes) => encoder.allocate(bytes),
    submit: () => encoder.submit(),
    write({ buffer, offset, length, dtype }, values) {
      if (values.length > length)
        throw new RangeError(`${values.length} values do not fit a binding of ${length} elements`);
      encoder.submit();
      device.write(buffer, offset, encoded(values, dtype));
    },
    async read({ buffer, offset, length, dtype }, options) {
      encoder.submit();
      const bytes = await device.read(buffer, offset, length * bytesPerElement(dtype), options);
      return decoded(bytes, dtype);
    },
  };
}

/** A zeroed buffer that outlives the open recording, if there is one. */
export const allocateResident = <B>(target: ResidentTarget<B>, bytes: number): B =>
  target.allocateResident?.(bytes) ?? target.allocate(bytes);

function encoded(values: ArrayLike<number>, dtype: DType): BufferSource {
  switch (dtype) {
    case "float32":
      return Float32Array.from(values);
    case "int32":
    case "uint32":
      return integersOf(values, dtype);
    default: {
      const options = { saturate: isFloat8(dtype) };
      return encodeArray(values, formatOf(dtype), undefined, options) as Uint16Array<ArrayBuffer>;
    }
  }
}

function decoded(bytes: ArrayBuffer, dtype: DType): KernelView {
  switch (dtype) {
    case "float32":
      return new Float32Array(bytes);
    case "int32":
      return new Int32Array(bytes);
    case "uint32":
      return new Uint32Array(bytes);
    default:
      return decodeArray(
        codesOf(bytes, 0, bytes.byteLength / bytesPerElement(dtype), dtype),
        formatOf(dtype),
      );
  }
}
