import { expect, test } from "vitest";
import { probeCapabilities } from "./capabilities.js";
import { matrixProbe, matrixProbeSums } from "./matrix-probe.js";
import { requestNullDevice } from "./node.js";

const configurations = [
  { m: 16, n: 16, k: 16, component: "f16", lanes: 32 },
  { m: 16, n: 8, k: 8, component: "f16", lanes: 32 },
  { m: 8, n: 16, k: 16, component: "f16", lanes: 16 },
  { m: 8, n: 8, k: 8, component: "f16", lanes: 8 },
  { m: 8, n: 8, k: 8, component: "f32", lanes: 64 },
] as const;

test.each(configurations)(
  "the probe of $m×$n×$k $component by $lanes lanes compiles",
  async ({ lanes, ...matrix }) => {
    const gpu = await requestNullDevice();
    gpu.pushErrorScope("validation");
    await gpu.createComputePipelineAsync({
      layout: "auto",
      compute: { module: gpu.createShaderModule({ code: matrixProbe(matrix, lanes) }) },
    });
    expect(await gpu.popErrorScope()).toBeNull();
    gpu.destroy();
  },
);

test("sums are exact, and one by hand", () => {
  const sums = matrixProbeSums({ m: 2, n: 2, k: 2, component: "f16" });
  // [0 1; 2 3] · [0 1; 2 3], four times.
  expect([...sums]).toEqual([8, 12, 24, 44]);
});

/** Whether an integer is a number of float16: at most 65504, and of eleven bits. */
const isFloat16 = (x: number): boolean =>
  x <= 65_504 && x % 2 ** Math.max(0, Math.floor(Math.log2(x)) - 10) === 0;

test.each(configurations)("a driver that adds up in float16 fails at $m×$n×$k", (matrix) => {
  const wrong = [...matrixProbeSums(matrix)].filter((sum) => !isFloat16(sum));
  expect(wrong.length).toBeGreaterThan((matrix.m * matrix.n) / 2);
});

test("what the adapter reports is tried, and left out where products are wrong", async () => {
  const gpu = await requestNullDevice();
  const tried: string[] = [];
  const watched = new Proxy(gpu, {
    get(target, name) {
      if (name === "createShaderModule")
        return (descriptor: GPUShaderModuleDescriptor) => {
          if (descriptor.code.includes("subgroupMatrixMultiplyAccumulate"))
            tried.push(...(/@subgroup_size\(\d+\)/.exec(descriptor.code) ?? []));
          return target.createShaderModule(descriptor);
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const adapterInfo = {
    vendor: "boaster",
    subgroupMinSize: 8,
    subgroupMaxSize: 32,
    subgroupMatrixConfigs: [
      { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 },
    ],
  } as unknown as GPUAdapterInfo;
  // The device of Dawn's null backend says nothing of matrices, as no device in Node does, and computes nothing.
  const { hardware } = await probeCapabilities(watched, { adapterInfo });
  expect(tried).toEqual(["@subgroup_size(32)", "@subgroup_size(16)", "@subgroup_size(8)"]);
  expect(hardware).toMatchObject({ class: "boaster", matrixSubgroupSize: 0, subgroupMatrices: [] });
  gpu.destroy();
});
