import type { Device } from "./device.js";
import { NoAdapterError } from "./errors.js";
import { type DeviceOptions, openDevice } from "./request.js";

/** Options of requesting a device from a browser. */
export interface BrowserDeviceOptions extends DeviceOptions {
  /** Which GPU of several. Default "high-performance". */
  readonly powerPreference?: GPUPowerPreference;
}

/**
 * Requests a device from the browser's `navigator.gpu`. In Node use `@halfstep/device/node`. Throws {@link
 * NoAdapterError}.
 */
export async function requestDevice(options: BrowserDeviceOptions = {}): Promise<Device> {
  const { gpu } = globalThis.navigator ?? {};
  if (!gpu)
    throw new NoAdapterError(
      "there is no navigator.gpu: use a browser with WebGPU on a secure page (https or localhost); in Node import @halfstep/device/node",
    );
  const { powerPreference = "high-performance" } = options;
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (!adapter)
    throw new NoAdapterError(
      "the browser has WebGPU but offers no adapter: turn hardware acceleration on (chrome://gpu tells more)",
    );
  return openDevice(adapter, options);
}
