import type { Hardware } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { engineReport } from "./engine-report.js";

const matrices = [{ m: 16, n: 16, k: 16, component: "f16" }] as const;
const hardware: Hardware = {
  class: "a GPU",
  workgroupBytes: 49_152,
  workgroupInvocations: 1024,
  matrixSubgroupSize: 32,
  subgroupMatrices: matrices,
};
const feature = "chromium-experimental-subgroup-matrix";

const reportOf = (
  changed: Partial<Hardware>,
  tier: "native" | "packed" = "native",
  features: readonly string[] = [feature],
) =>
  engineReport({
    capabilities: {
      ...{ tier, subgroupSize: 32, features: new Set(features) },
      hardware: { ...hardware, ...changed },
    },
  });

test("products say how they are computed", () => {
  expect(reportOf({})).toEqual({
    float16: "matrices of 16×16×16 f16, by 32 lanes, in blocks of 128×128×32, 2 stages",
    float32: "blocks of 128×128×16 in workgroup memory",
  });
  const apple = {
    workgroupBytes: 32_768,
    subgroupMatrices: [{ ...matrices[0], component: "f32" }],
  };
  expect(reportOf(apple as Partial<Hardware>).float32).toBe(
    "matrices of 16×16×16 f32, by 32 lanes, in blocks of 128×128×16, 1 stage",
  );
});

test.each([
  [
    "the feature is missing",
    reportOf({ subgroupMatrices: [] }, "native", []),
    /the device has no "chromium-exp/,
  ],
  ["there are no halves", reportOf({ subgroupMatrices: [] }, "packed"), /no "shader-f16"/],
  [
    "none multiplies right",
    reportOf({ subgroupMatrices: [] }),
    /wrapDevice\(\) the adapter's info/,
  ],
  ["none fits", reportOf({ workgroupBytes: 4096 }), /no block fits its 4096 bytes/],
])("a GPU without matrices is told why: %s", (_, { float16, warning }, reason) => {
  expect(float16).not.toContain("matrices");
  expect(warning).toMatch(reason);
});

test("a software adapter multiplies by rows, without a warning", async () => {
  const device = await requestTestDevice();
  if (device.capabilities.hardware.class !== "software") return;
  expect(engineReport(device)).toEqual({
    float16: "rows, without blocks",
    float32: "rows, without blocks",
  });
});
