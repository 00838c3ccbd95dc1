import { autocast } from "@halfstep/autocast";
import { wrapDevice } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  gpuRuntime,
  type NonFiniteOrigin,
  type Runtime,
  type Tensor,
  type Variable,
  withScope,
} from "../index.js";

const runtimes: readonly (readonly [string, () => Promise<Runtime>])[] = [
  ["CPU", async () => cpuRuntime({ provenance: "always" })],
  ...(await testTiers()).map(
    (tier) =>
      [
        `GPU, ${tier}`,
        async () => gpuRuntime(await requestTestDevice({ tier }), { provenance: "always" }),
      ] as const,
  ),
];

/** Two layers, h = relu(x w) and y = h v, and a loss; options make each of them fail. */
function network(runtime: Runtime): {
  readonly w: Variable;
  readonly v: Variable;
  run(x: readonly number[], scale?: number): Promise<NonFiniteOrigin | undefined>;
} {
  const w = runtime.variable(Float32Array.of(1, 2, 3, 4), [2, 2], {
    requiresGrad: true,
    name: "first.w",
  });
  const v = runtime.variable(Float32Array.of(1, 1), [2, 1], {
    requiresGrad: true,
    name: "second.v",
  });
  return {
    w,
    v,
    async run(x, scale = 1) {
      const loss = await runtime.step(() => {
        const input = runtime.tensor(x, [x.length / 2, 2]);
        const y = autocast({ dtype: "float16" }, () => {
          const h = withScope(
            () => "first",
            () => input.matmul(w).relu(),
          );
          return withScope(
            () => "second",
            () => h.matmul(v),
          );
        });
        const loss = y.to("float32").mul(scale).sum();
        loss.backward();
        for (const parameter of [w, v]) parameter.zeroGrad();
        return loss;
      });
      loss.dispose();
      return runtime.nonFiniteOrigin();
    },
  };
}

describe.each(runtimes)("%s", (_, make) => {
  test("a clean step has no origin", async () => {
    expect(await network(await make()).run([1, 2, 3, 4])).toBeUndefined();
  });

  test("overflow of a product is found in its forward pass, by module, tensor and element", async () => {
    const { run } = network(await make());
    expect(await run([1, 2, 3, 3e4])).toEqual({
      op: "matmul",
      module: "first",
      tensor: "result float16 [2, 2]",
      element: 2,
      kind: "infinity",
    });
  });

  test("a cast that overflows is found before the product that reads it", async () => {
    expect(await network(await make()).run([1, 2, -7e4, 1])).toEqual({
      op: "cast",
      module: "first",
      tensor: "result float16 [2, 2]",
      element: 2,
      kind: "infinity",
    });
  });

  test("overflow of a gradient is found in the backward pass of the op", async () => {
    expect(await network(await make()).run([1, 2, 3, 4], 2 ** 17)).toEqual({
      op: "cast in the backward of cast",
      tensor: "result float16 [2, 1]",
      element: 0,
      kind: "infinity",
    });
  });

  test("parameters and inputs that are not finite from the start are named", async () => {
    const { run, v } = network(await make());
    expect(await run([1, Number.NaN, 3, 4])).toEqual({
      op: "cast",
      module: "first",
      tensor: "argument float32 [2, 2]",
      element: 1,
      kind: "nan",
    });
    v.assign(v.mul(Number.POSITIVE_INFINITY));
    expect(await run([1, 2, 3, 4])).toEqual({
      op: "cast",
      module: "second",
      tensor: "argument second.v, float32 [2, 1]",
      element: 0,
      kind: "infinity",
    });
  });
});

test("searching changes no bit of a step", async () => {
  const bits = async (provenance: "off" | "always"): Promise<string> => {
    const runtime = gpuRuntime(await requestTestDevice(), { provenance });
    const { run, w, v } = network(runtime);
    const seen: number[] = [];
    for (const x of [
      [0.1, 0.7, -0.3, 0.9],
      [1e-7, 5, 3, -2],
    ]) {
      await run(x);
      const gradients = await runtime.step(() => {
        const y = autocast({ dtype: "float16" }, () =>
          runtime.tensor(x, [2, 2]).matmul(w).tanh().matmul(v),
        );
        y.to("float32").square().sum().backward();
        const copies = [w, v].map((p) => (p.grad as Tensor).mul(1));
        for (const parameter of [w, v]) parameter.zeroGrad();
        return copies;
      });
      for (const gradient of gradients) seen.push(...(await gradient.toArray()));
    }
    return seen.join();
  };
  const plain = await bits("off");
  expect(plain.split(",").length).toBe(12);
  expect(await bits("always")).toBe(plain);
});

test("nothing is searched where nobody asked, and an unknown mode is refused", async () => {
  const runtime = cpuRuntime();
  expect(await network(runtime).run([1, Number.NaN])).toBeUndefined();
  expect(() => cpuRuntime({ provenance: "on" as "off" })).toThrow('provenance is "on"');
});

test("searches keep the memory of the latest ones", async () => {
  const device = await wrapDevice((await requestTestDevice()).gpu);
  const runtime = gpuRuntime(device, { provenance: "always" });
  const { run } = network(runtime);
  for (let i = 0; i < 70; i++) await run([1, 2, 3, 4]);
  const before = device.memory.live;
  for (let i = 0; i < 6; i++) await run([1, 2, 3, 4]);
  expect(device.memory.live).toBe(before);
});
