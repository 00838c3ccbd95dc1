import type { Binding, Device, KernelView, LaunchTarget } from "@halfstep/device";
import { bytesFor, decodeElements, encodeElements } from "@halfstep/formats/dtypes";

/**
 * A target for optimizers and loss scalers: launches, and resident memory that the host writes and reads. Examples are `cpuTarget()`,
 * {@link deviceTarget} and a recorder.
 */
export interface ResidentTarget<B> extends LaunchTarget<B> {
  /** Allocates a zeroed buffer that outlives the recording in which it is made. Absent where `allocate` returns such buffers. */
  allocateResident?(bytes: number): B;
  /** Copies elements into a buffer, encoded as the binding's dtype, after earlier and before later launches. */
  write(binding: Binding<B>, values: ArrayLike<number>): void;
  /**
   * Reads and decodes the elements of a binding, after all earlier launches. A read that no step waits for passes `wait: "background"`,
   * and is not counted as a wait of the host.
   */
  read(
    binding: Binding<B>,
    options?: { readonly wait?: "host" | "background" },
  ): KernelView | Promise<KernelView>;
  /**
   * Calls `update`, whose launches update the parameters `values` in place. A target with 16-bit copies of parameters updates these, too.
   * Absent where there are no copies.
   */
  updateParameters?(values: Binding<B>, update: () => void): void;
  /** Where launches can be dropped before they run: registers `undo`, which is called if the launches so far are dropped. */
  onRollback?(undo: () => void): void;
  /** Where launches can be dropped: throws while a step is open, for a `call` that changes what a dropped step could not restore. */
  requireNoStep?(call: string): void;
}

/** A target on a bare device: launches are encoded at once and run at `submit()`, or before a read or write. */
export interface DeviceTarget extends ResidentTarget<GPUBuffer> {
  submit(): void;
}

/**
 * A launch target on a device with resident memory, for optimizers and scalers without a runtime.
 * @throws TypeError for a GPUDevice, which `wrapDevice()` of `@halfstep/device` makes a device of
 */
export function deviceTarget(device: Device): DeviceTarget {
  if (typeof (device as Partial<Device> | undefined)?.encoder !== "function")
    throw new TypeError(
      "deviceTarget(device): device has no encoder(): pass that of requestDevice(), or await wrapDevice(gpuDevice)",
    );
  const encoder = device.encoder();
  return {
    hardwareClass: encoder.hardwareClass,
    launch: (launch) => encoder.launch(launch),
    allocate: (bytes) => encoder.allocate(bytes),
    scratch: (bytes) => encoder.scratch(bytes),
    submit: () => encoder.submit(),
    write({ buffer, offset, length, dtype }, values) {
      if (values.length > length)
        throw new RangeError(`${values.length} values do not fit a binding of ${length} elements`);
      encoder.submit();
      device.write(buffer, offset, encodeElements(values, dtype));
    },
    async read({ buffer, offset, length, dtype }, options) {
      encoder.submit();
      const bytes = await device.read(buffer, offset, bytesFor(dtype, length), options);
      return decodeElements(bytes, dtype, length);
    },
  };
}

/** A zeroed buffer that outlives the open recording, if there is one. */
export const allocateResident = <B>(target: ResidentTarget<B>, bytes: number): B =>
  target.allocateResident?.(bytes) ?? target.allocate(bytes);
