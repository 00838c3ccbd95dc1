import { autocast } from "@halfstep/autocast";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  gpuRuntime,
  type Runtime,
  type RuntimeOptions,
  type Tensor,
  type UnderflowSite,
  withScope,
} from "../index.js";

const runtimes: readonly (readonly [string, (options?: RuntimeOptions) => Promise<Runtime>])[] = [
  ["CPU", async (options) => cpuRuntime(options)],
  ...(await testTiers()).map(
    (tier) =>
      [
        `GPU, ${tier}`,
        async (options?: RuntimeOptions) => gpuRuntime(await requestTestDevice({ tier }), options),
      ] as const,
  ),
];

/** Two layers under autocast, and a loss whose gradients are multiplied by `factor`. */
function network(runtime: Runtime) {
  const w = runtime.variable(Float32Array.of(1, 2, 3, 4), [2, 2], {
    requiresGrad: true,
    name: "first.w",
  });
  const v = runtime.variable(Float32Array.of(1, 2 ** -8), [2, 1], {
    requiresGrad: true,
    name: "second.v",
  });
  const lossOf = (factor: number): Tensor => {
    const y = autocast({ dtype: "float16" }, () => {
      const x = runtime.tensor([1, 2, 3, -4], [2, 2]);
      const h = withScope(
        () => "first",
        () => x.matmul(w).relu(),
      );
      return withScope(
        () => "second",
        () => h.matmul(v),
      );
    });
    return y.to("float32").mul(factor).sum();
  };
  const gradients = async (factor: number): Promise<number[]> => {
    const copies = await runtime.step(() => {
      lossOf(factor).backward();
      const copies = [w, v].map(({ grad }) => (grad as Tensor).mul(1));
      for (const parameter of [w, v]) parameter.zeroGrad();
      return copies;
    });
    return (await Promise.all(copies.map((copy) => copy.toArray()))).flatMap((copy) => [...copy]);
  };
  return { w, v, lossOf, gradients };
}

const lossy = (sites: readonly UnderflowSite[]): unknown[] =>
  sites
    .filter(({ roundedToZero }) => roundedToZero > 0)
    .map(({ op, module, tensor, elements, roundedToZero, exactZeros }) => [
      ...[op, module, tensor],
      [roundedToZero, exactZeros, elements],
    ]);

describe.each(runtimes)("%s", (_, make) => {
  test("stores tell by op and module what they round to zero, exact zeros apart", async () => {
    const runtime = await make({ underflow: "always" });
    const { gradients } = network(runtime);
    // Half of h's gradients are below half of float16's smallest number, and y's gradients are above it.
    const found = await gradients(2 ** -20);
    expect(found.some((value) => value !== 0)).toBe(true);
    const sites = await runtime.underflow();
    expect(lossy(sites)).toEqual([
      ["matmul in the backward of matmul", "second", "result float16 [2, 2]", [2, 0, 4]],
    ]);
    const relu = sites.find(({ op }) => op.startsWith("relu"));
    expect(relu).toMatchObject({ module: "first", exactZeros: 2, isBackward: false, largest: 10 });

    // Here y's gradients are already rounded to zeros.
    expect(await gradients(2 ** -30)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(lossy(await runtime.underflow())).toEqual([
      ["cast in the backward of cast", undefined, "result float16 [2, 1]", [2, 0, 2]],
    ]);
  });

  test("counting changes no bit, and costs nothing where it is off", async () => {
    const [plain, counted] = [await make(), await make({ underflow: "always" })];
    for (const factor of [1, 2 ** -18, 2 ** -24])
      expect(await network(counted).gradients(factor)).toEqual(
        await network(plain).gradients(factor),
      );
    const names = plain.lastPlan?.launches.map(({ launch }) => launch.kernel.name) ?? [];
    expect(names.filter((name) => name.includes("range"))).toEqual([]);
    expect(await plain.underflow()).toEqual([]);
  });
});

test("an unknown mode is refused", () => {
  expect(() => cpuRuntime({ underflow: "on" as "off" })).toThrow(
    'underflow is "on": it must be "off", "afterZeros" or "always"',
  );
});
