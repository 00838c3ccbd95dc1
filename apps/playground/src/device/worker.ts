import { type Device, NoAdapterError, requestDevice } from "@halfstep/device";
import { noGpuText } from "../site/no-gpu.js";
import { nameOf } from "../train/session.js";
import { type DeviceReport, type Measurement, measure, measuredSetups } from "./measure.js";

/** What the worker tells the page. */
export type DeviceNews =
  | { readonly type: "report"; readonly report: DeviceReport }
  | { readonly type: "done" }
  | { readonly type: "failed"; readonly message: string };

const tell = (news: DeviceNews): void => postMessage(news);

try {
  const device = await requestDevice();
  const measurements: Measurement[] = [];
  tell({ type: "report", report: reportOf(device, measurements) });
  for (const setup of measuredSetups) {
    measurements.push(await measure(device, setup));
    tell({ type: "report", report: reportOf(device, measurements) });
  }
  tell({ type: "done" });
  device.destroy();
} catch (error) {
  tell({ type: "failed", message: messageOf(error) });
}

function messageOf(error: unknown): string {
  if (error instanceof NoAdapterError) return noGpuText(error);
  return error instanceof Error ? error.message : String(error);
}

function reportOf(device: Device, measurements: readonly Measurement[]): DeviceReport {
  const { tier, subgroupSize, adapter, hardware, features, limits } = device.capabilities;
  const named = [
    "maxBufferSize",
    "maxComputeWorkgroupStorageSize",
    "maxStorageBuffersPerShaderStage",
  ] as const;
  return {
    adapter: nameOf(device),
    browser: navigator.userAgent,
    tier,
    subgroupSize,
    isFallback: adapter.isFallback,
    hardware: { ...hardware },
    features: [...features].sort(),
    limits: Object.fromEntries(named.map((name) => [name, limits[name]])),
    programs: device.counters.pipelinesCreated,
    measurements: [...measurements],
  };
}
