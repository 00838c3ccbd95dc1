import type { Tier } from "./capabilities.js";
import { type Device, type WrapOptions, wrapDevice } from "./device.js";

/** Options of a device request. */
export interface DeviceOptions extends WrapOptions {
  /** Required features, besides the optional ones that are always requested. */
  readonly features?: readonly string[];
}

/** Requested where the adapter has them. */
const native = [
  "shader-f16",
  "subgroups",
  "subgroup-size-control",
  "chromium-experimental-subgroup-matrix",
];

/** Requests a device with all limits of the adapter, and the features for the tier. */
export async function openDevice(adapter: GPUAdapter, options: DeviceOptions): Promise<Device> {
  const gpu = await openGpu(adapter, options);
  const { features, ...others } = options;
  // The device has less information than the adapter: in Node none about matrices.
  return wrapDevice(gpu, { adapterInfo: adapter.info, ...others });
}

/** As {@link openDevice}, without a wrapper. */
export async function openGpu(
  adapter: GPUAdapter,
  { features = [], tier, label }: DeviceOptions,
): Promise<GPUDevice> {
  const missing = features.filter((feature) => !adapter.features.has(feature));
  if (missing.length > 0)
    throw new TypeError(
      `the adapter lacks ${missing.join(", ")}: leave it out of \`features\`; it has ${[...adapter.features].join(", ")}`,
    );
  return adapter.requestDevice({
    ...(label === undefined ? {} : { label }),
    requiredFeatures: [
      ...new Set([...featuresFor(adapter, tier), ...features]),
    ] as GPUFeatureName[],
    requiredLimits: limitsOf(adapter.limits),
  });
}

const featuresFor = (adapter: GPUAdapter, tier: Tier | undefined): string[] =>
  ["timestamp-query", ...(tier === "packed" ? [] : native)].filter((f) => adapter.features.has(f));

function limitsOf(limits: GPUSupportedLimits): Record<string, number> {
  const all: Record<string, number> = {};
  // The limits are getters of the prototype, which `Object.entries` does not list.
  for (const name in limits) {
    const value = limits[name as keyof GPUSupportedLimits];
    if (typeof value === "number") all[name] = value;
  }
  return all;
}
