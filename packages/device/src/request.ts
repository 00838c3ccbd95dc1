import type { Tier } from "./capabilities.js";
import { type Device, type WrapOptions, wrapDevice } from "./device.js";

/** What is asked of an adapter. */
export interface DeviceOptions extends WrapOptions {
  /** Features that the device must have, besides the useful ones that are always asked for. */
  readonly features?: readonly string[];
}

/** Asked for where the adapter has them. */
const native = [
  "shader-f16",
  "subgroups",
  "subgroup-size-control",
  "chromium-experimental-subgroup-matrix",
];

/** A device with every limit that the adapter has, and the features that serve the tier. */
export async function openDevice(adapter: GPUAdapter, options: DeviceOptions): Promise<Device> {
  const { features = [], tier, label } = options;
  const missing = features.filter((feature) => !adapter.features.has(feature));
  if (missing.length > 0)
    throw new TypeError(
      `the adapter lacks ${missing.join(", ")}: leave it out of \`features\`; it has ${[...adapter.features].join(", ")}`,
    );
  const gpu = await adapter.requestDevice({
    ...(label === undefined ? {} : { label }),
    requiredFeatures: [
      ...new Set([...featuresFor(adapter, tier), ...features]),
    ] as GPUFeatureName[],
    requiredLimits: limitsOf(adapter.limits),
  });
  // The device tells less than the adapter: in Node nothing about matrices.
  return wrapDevice(gpu, { adapterInfo: adapter.info, ...options });
}

const featuresFor = (adapter: GPUAdapter, tier: Tier | undefined): string[] =>
  ["timestamp-query", ...(tier === "packed" ? [] : native)].filter((f) => adapter.features.has(f));

function limitsOf(limits: GPUSupportedLimits): Record<string, number> {
  const all: Record<string, number> = {};
  // The limits are getters of the prototype, which `Object.entries` does not see.
  for (const name in limits) {
    const value = limits[name as keyof GPUSupportedLimits];
    if (typeof value === "number") all[name] = value;
  }
  return all;
}
