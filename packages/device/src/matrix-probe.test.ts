import { expect, test } from "vitest";
import { probeCapabilities } from "./capabilities.js";
import { matrixProbe, matrixProbeSums } from "./matrix-probe.js";
import { requestNullDevice } from "./node.js";

test.each([
  { m: 16, n: 16, k: 16, component: "f16" },
  { m: 16, n: 8, k: 8, component: "f16" },
  { m: 8, n: 16, k: 16, component: "f16" },
  { m: 8, n: 8, k: 8, component: "f32" },
] as const)("the probe of $m×$n×$k $component compiles", async (matrix) => {
  const gpu = await requestNullDevice();
  gpu.pushErrorScope("validation");
  await gpu.createComputePipelineAsync({
    layout: "auto",
    compute: { module: gpu.createShaderModule({ code: matrixProbe(matrix) }) },
  });
  expect(await gpu.popErrorScope()).toBeNull();
  gpu.destroy();
});

test("sums are exact, and one by hand", () => {
  const sums = matrixProbeSums({ m: 2, n: 2, k: 2, component: "f16" });
  // [0 1; 2 3] · [0 1; 2 3], four times.
  expect([...sums]).toEqual([8, 12, 24, 44]);
});

test("matrices that a device reports but does not multiply are left out", async () => {
  const gpu = await requestNullDevice();
  const boasting = new Proxy(gpu, {
    get(target, name) {
      if (name === "adapterInfo")
        return {
          vendor: "boaster",
          subgroupMinSize: 32,
          subgroupMaxSize: 32,
          subgroupMatrixConfigs: [
            { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 },
          ],
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const { hardware } = await probeCapabilities(boasting, {});
  expect(hardware.class).toBe("boaster");
  expect(hardware.matrixSubgroupSize).toBe(32);
  expect(hardware.subgroupMatrices).toEqual([]);
  gpu.destroy();
});
