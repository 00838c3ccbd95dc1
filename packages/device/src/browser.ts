import type { Device } from "./device.js";
import { NoAdapterError } from "./errors.js";
import { deviceOptions, requireOptions, shown } from "./options.js";
import { type DeviceOptions, openDevice } from "./request.js";

/** Options of requesting a device from a browser. */
export interface BrowserDeviceOptions extends DeviceOptions {
  /** Which GPU of several. Default "high-performance". */
  readonly powerPreference?: GPUPowerPreference;
}

const powerPreferences: readonly GPUPowerPreference[] = ["high-performance", "low-power"];

/**
 * Requests a device from the `navigator.gpu` of a browser or of Deno. In Node use `@halfstep/device/node`.
 *
 * @throws NoAdapterError; RangeError for unknown options, and a budget or preference that is none
 */
export async function requestDevice(options: BrowserDeviceOptions = {}): Promise<Device> {
  requireOptions("requestDevice(options)", options, [...deviceOptions, "powerPreference"]);
  const { powerPreference = "high-performance", ...others } = options;
  if (!powerPreferences.includes(powerPreference))
    throw new RangeError(
      `requestDevice(options): powerPreference is ${shown(powerPreference)}; it must be ${powerPreferences.map(shown).join(" or ")}`,
    );
  const { gpu } = globalThis.navigator ?? {};
  if (!gpu)
    throw new NoAdapterError(
      "there is no navigator.gpu: use a browser with WebGPU on a secure page (https or localhost); in Node import @halfstep/device/node, in Deno add --unstable-webgpu",
    );
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (!adapter)
    throw new NoAdapterError(
      "the browser has WebGPU but offers no adapter: turn hardware acceleration on (chrome://gpu tells more, in Firefox about:support)",
    );
  return openDevice(adapter, others);
}
