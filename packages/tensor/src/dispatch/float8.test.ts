import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuRuntime, flatten, gpuRuntime, grad, type Runtime, type Tensor } from "../index.js";

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

const values = [1, -1.1, 17.5, 1000, -1000, 0.001, 2 ** -10, Number.NaN, 3];
const stored = {
  float8e4m3fn: [1, -1.125, 18, 448, -448, 2 ** -9, 0, Number.NaN, 3],
  float8e5m2: [1, -1, 16, 1024, -1024, 2 ** -10, 2 ** -10, Number.NaN, 3],
};

test.each(runtimes)("casts round to nearest even and saturate: %s", async (_, open) => {
  const runtime = await open();
  const x = runtime.tensor(values);
  for (const dtype of ["float8e4m3fn", "float8e5m2"] as const) {
    const cast = x.to(dtype);
    const made = runtime.tensor(values, [9], { dtype });
    expect([cast.dtype, cast.to("float16").dtype]).toEqual([dtype, "float16"]);
    const expected = Float32Array.from(stored[dtype]);
    for (const tensor of [cast, made, cast.to("float16"), cast.to("float32"), made.to("bfloat16")])
      expect(await tensor.toArray()).toEqual(expected);
  }
});

test.each(runtimes)(
  "products read 8 bits as they are, and casts around them round: %s",
  async (_, open) => {
    const runtime = await open();
    const numbers = (count: number): number[] =>
      Array.from({ length: count }, (_x, i) => Math.sin(i + 1) * 3);
    const weight = runtime.variable(numbers(24), [4, 6], { dtype: "float8e4m3fn" });
    const run = (): [Tensor, Tensor, Tensor] => {
      const x = runtime.tensor(numbers(30), [5, 6]);
      const y = x.to("float8e5m2").to("float16").matmul(weight.to("float16").transpose(0, 1));
      // An 8-bit cast between two steps that could be fused otherwise.
      const z = x.mul(0.3).to("float8e4m3fn").to("float32").add(0.001);
      return [y, z, x.to("float8e4m3fn").to("float16").to("float8e5m2").to("float32")];
    };
    const [plain, planned] = [run(), await runtime.step(run)];
    const exact = cpuRuntime({ passes: [] });
    const [y, z, w] = await exact.step(() => {
      const f8 = (given: Tensor, dtype: "float8e4m3fn" | "float8e5m2"): Tensor =>
        exact.tensor(numbers(given.size), given.shape, { dtype }).to("float32");
      const x = exact.tensor(numbers(30), [5, 6]);
      const product = f8(x, "float8e5m2").matmul(f8(weight, "float8e4m3fn").transpose(0, 1));
      const z = x.mul(0.3).to("float8e4m3fn").to("float32").add(0.001);
      return [product.to("float16"), z, x.to("float8e4m3fn").to("float8e5m2").to("float32")];
    });
    for (const [i, want] of [y, z, w].entries())
      for (const got of [plain[i], planned[i]])
        expect(await got?.toArray()).toEqual(await want?.toArray());
    expect(runtime.lastPlan?.statistics.recordedCasts).toBeGreaterThan(5);
  },
);

test("a product of 8-bit operands casts them in its loads", async () => {
  const runtime = gpuRuntime(await requestTestDevice());
  const weight = runtime.variable(new Float32Array(64), [8, 8], { dtype: "float8e4m3fn" });
  const input = runtime.variable(new Float32Array(64), [8, 8], { dtype: "float8e5m2" });
  const result = await runtime.step(() =>
    autocast({ dtype: "float16" }, () => input.matmul(weight)),
  );
  expect(result.dtype).toBe("float16");
  const launches = runtime.lastPlan?.launches ?? [];
  expect(launches.map(({ launch }) => launch.bindings.map(({ dtype }) => dtype))).toEqual([
    ["float8e5m2", "float8e4m3fn", "float16"],
  ]);
});

test("other ops compute in the dtype of what they meet, or in float32", () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor(values, [9], { dtype: "float8e4m3fn" });
  const half = runtime.tensor(values, [9], { dtype: "bfloat16" });
  const dtypes = [x.add(x), x.mul(half), x.mul(half).add(half), x.exp(), x.sum(), x.std()];
  expect(dtypes.map(({ dtype }) => dtype)).toEqual([
    ...["float32", "bfloat16", "bfloat16", "float32", "float32", "float32"],
  ]);
});

test("the gradient of a cast has the dtype of what was cast", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2, 3], [3], { requiresGrad: true });
  const y = runtime.tensor([1, 2, 3], [3], { requiresGrad: true, dtype: "float8e5m2" });
  const loss = x.to("float8e4m3fn").to("float32").mul(y.to("float32")).mul(1.1).sum();
  const [ofX, ofY] = grad(loss, [x, y]) as [Tensor, Tensor];
  expect([ofX.dtype, ofY.dtype]).toEqual(["float32", "float8e5m2"]);
  expect([...(await ofY.toArray())]).toEqual([1, 2, 3.5]);
});

test("variables of 8 bits are assigned, and refused by optimizers", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2, 3, 4, 5], [5], { dtype: "float8e4m3fn", name: "w" });
  await runtime.step(() => weight.assign(weight.to("float32").mul(100)));
  expect([...(await weight.toArray())]).toEqual([96, 192, 288, 384, 448]);
  expect(() => flatten([weight])).toThrow("w is float8e4m3fn");
});
