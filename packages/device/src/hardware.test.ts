import { expect, test } from "vitest";
import { hardwareOf, pinnableSizes, reportedMatrices } from "./hardware.js";
import { requestTestDevice } from "./testing.js";

const limits = { maxComputeWorkgroupStorageSize: 49_152, maxComputeInvocationsPerWorkgroup: 1024 };
const features = new Set([
  "shader-f16",
  "subgroups",
  "subgroup-size-control",
  "chromium-experimental-subgroup-matrix",
]);
const config = (
  componentType: string,
  resultComponentType: string,
  M: number,
  N: number,
  K: number,
) => ({
  componentType,
  resultComponentType,
  M,
  N,
  K,
});
const nvidia = {
  vendor: "NVIDIA",
  subgroupMinSize: 32,
  subgroupMaxSize: 32,
  subgroupMatrixConfigs: [
    config("f16", "f16", 16, 16, 16),
    config("f16", "f32", 16, 8, 8),
    config("f16", "f32", 16, 16, 16),
    config("u8", "u32", 16, 16, 32),
    config("f16", "f32", 16, 8, 16),
  ],
};

test("matrices that add up in float32, the largest first", () => {
  expect(reportedMatrices(nvidia, features)).toEqual([
    { m: 16, n: 16, k: 16, component: "f16" },
    { m: 16, n: 8, k: 16, component: "f16" },
    { m: 16, n: 8, k: 8, component: "f16" },
  ]);
});

test.each([
  ["the feature", "chromium-experimental-subgroup-matrix"],
  ["halves", "shader-f16"],
])("no matrices without %s", (_, missing) => {
  const fewer = new Set([...features].filter((feature) => feature !== missing));
  expect(reportedMatrices(nvidia, fewer)).toEqual([]);
});

test("float32 matrices need no halves, and are 8 × 8 × 8", () => {
  const subgroupMatrixConfigs = [config("f32", "f32", 16, 16, 16), config("f32", "f32", 8, 8, 8)];
  const found = reportedMatrices({ subgroupMatrixConfigs }, features);
  expect(found).toEqual([{ m: 8, n: 8, k: 8, component: "f32" }]);
});

test.each([
  [32, 32, [32]],
  [4, 64, [32, 16, 8, 64, 4]],
  [8, 8, [8]],
  [64, 64, [64]],
])("subgroups of %i to %i can be pinned to %j", (subgroupMinSize, subgroupMaxSize, sizes) => {
  const info = { subgroupMinSize, subgroupMaxSize };
  expect(pinnableSizes(info, features)).toEqual(sizes);
  expect(pinnableSizes(info, new Set(["subgroups"]))).toEqual([]);
});

test("adapters that compute on the CPU are one class; those that keep silent are unknown", async () => {
  const { capabilities } = await requestTestDevice();
  const { isFallback, vendor } = capabilities.adapter;
  expect(capabilities.hardware.class).toBe(
    isFallback ? "software" : vendor.toLowerCase() || "unknown",
  );
  expect(capabilities.hardware.workgroupBytes).toBeGreaterThanOrEqual(16_384);
  expect(hardwareOf({ description: "SwiftShader Device" }, limits).class).toBe("software");
  expect(hardwareOf({}, limits).class).toBe("unknown");
});
