import { expect, test } from "vitest";
import { hardwareOf } from "./hardware.js";
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
  expect(hardwareOf(nvidia, features, limits)).toEqual({
    class: "nvidia",
    workgroupBytes: 49_152,
    workgroupInvocations: 1024,
    matrixSubgroupSize: 32,
    subgroupMatrices: [
      { m: 16, n: 16, k: 16, component: "f16" },
      { m: 16, n: 8, k: 16, component: "f16" },
      { m: 16, n: 8, k: 8, component: "f16" },
    ],
  });
});

test.each([
  ["the feature", "chromium-experimental-subgroup-matrix"],
  ["a subgroup size that can be asked for", "subgroup-size-control"],
  ["halves", "shader-f16"],
])("no matrices without %s", (_, missing) => {
  const fewer = new Set([...features].filter((feature) => feature !== missing));
  expect(hardwareOf(nvidia, fewer, limits).subgroupMatrices).toEqual([]);
});

test("float32 matrices need no halves; subgroups of 32 must be possible", () => {
  const apple = { vendor: "apple", subgroupMinSize: 4, subgroupMaxSize: 64 };
  const subgroupMatrixConfigs = [config("f32", "f32", 8, 8, 8)];
  const found = hardwareOf({ ...apple, subgroupMatrixConfigs }, features, limits);
  expect(found.subgroupMatrices).toEqual([{ m: 8, n: 8, k: 8, component: "f32" }]);
  const wide = { ...apple, subgroupMinSize: 64, subgroupMatrixConfigs };
  expect(hardwareOf(wide, features, limits).subgroupMatrices).toEqual([]);
});

test("adapters that compute on the CPU are one class; those that keep silent are unknown", async () => {
  const { capabilities } = await requestTestDevice();
  const { isFallback, vendor } = capabilities.adapter;
  expect(capabilities.hardware.class).toBe(
    isFallback ? "software" : vendor.toLowerCase() || "unknown",
  );
  expect(capabilities.hardware.workgroupBytes).toBeGreaterThanOrEqual(16_384);
  expect(hardwareOf({ description: "SwiftShader Device" }, features, limits).class).toBe(
    "software",
  );
  expect(hardwareOf({}, features, limits).class).toBe("unknown");
});
