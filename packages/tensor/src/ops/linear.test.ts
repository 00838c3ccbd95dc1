import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import {
  checkpoint,
  cpuRuntime,
  gpuRuntime,
  grad,
  linear,
  type Plan,
  type Runtime,
  type Tensor,
  type Variable,
} from "../index.js";

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

const variable = (runtime: Runtime, shape: readonly number[], seed: number): Variable =>
  runtime.variable(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
    shape,
    { requiresGrad: true, name: `v${seed}` },
  );

interface Layer {
  readonly weight: Variable;
  readonly bias: Variable;
}

const layerOf = (runtime: Runtime, from: number, to: number): Layer => ({
  weight: variable(runtime, [to, from], 1),
  bias: variable(runtime, [to], 2),
});

/** Names of the launches of a plan, and how many results each has. */
const launchesOf = ({ launches }: Plan): readonly string[] =>
  launches.map(({ launch: { kernel } }) => {
    const written = kernel.bindings.filter(({ access }) => access !== "read").length;
    return `${kernel.name}${written > 1 ? ` (${written} results)` : ""}`;
  });

describe("the gradients of a layer's parameters", () => {
  const planOf = (rows: number, wanted: (layer: Layer) => readonly Tensor[]): readonly string[] => {
    const runtime = cpuRuntime();
    const layer = layerOf(runtime, 8, 12);
    const x = runtime.zeros([rows, 8]);
    const gradient = runtime.zeros([rows, 12]);
    return launchesOf(
      runtime.plan(() => grad(linear(x, layer.weight, layer.bias), wanted(layer), { gradient })),
    );
  };

  test("are one launch, and one more where k is divided", () => {
    const both = ({ weight, bias }: Layer) => [weight, bias];
    expect(planOf(200, both)).toEqual(["matmul (2 results)"]);
    expect(planOf(1024, both)).toEqual(["matmul (2 results)", "sumParts (2 results)"]);
  });

  test("are a product, or a sum, where one of them is frozen", () => {
    const frozen = (name: keyof Layer) => (layer: Layer) => {
      layer[name].requiresGrad = false;
      return [layer.weight, layer.bias];
    };
    const runtime = cpuRuntime();
    const plan = (name: keyof Layer) =>
      launchesOf(
        runtime.plan(() => {
          const layer = layerOf(runtime, 8, 12);
          const wanted = frozen(name)(layer);
          const y = linear(runtime.zeros([100, 8]), layer.weight, layer.bias);
          return grad(y, wanted, { gradient: runtime.zeros([100, 12]) }).filter((g) => g);
        }),
      );
    expect(plan("bias")).toEqual(["matmul"]);
    expect(plan("weight")).toEqual(["reduce"]);
  });

  test("are those of the product and the sum, from nothing too", async () => {
    const runtime = cpuRuntime();
    const wrong: string[] = [];
    for (const [shape, from, to] of [
      [[0], 3, 2],
      [[2, 0], 3, 2],
      [[4], 0, 3],
      [[4], 3, 0],
      [[], 5, 3],
      [[2, 3], 5, 3],
    ] as const) {
      const { weight, bias } = layerOf(runtime, from, to);
      const x = variable(runtime, [...shape, from], 3);
      const gradientsOf = async (apply: () => Tensor): Promise<string> => {
        const found = await runtime.step(() => {
          const y = apply();
          const gradient = runtime.tensor(numbers(y.size, 4), y.shape);
          return grad(y, [x, weight, bias], { gradient }).filter((g) => g && g.size > 0);
        });
        const values = await Promise.all(found.map((g) => (g as Tensor).toArray()));
        return values.map((each) => each.join()).join("; ");
      };
      const got = await gradientsOf(() => linear(x, weight, bias));
      const want = await gradientsOf(() => x.matmul(weight, { transB: true }).add(bias));
      if (got !== want) wrong.push(`[${x.shape}]: ${got}, not ${want}`);
    }
    expect(wrong).toEqual([]);
  });

  test("are in the dtypes of the parameters, rounded where autocast computed in 16 bits", async () => {
    const runtime = cpuRuntime();
    const { weight, bias } = layerOf(runtime, 4, 3);
    const x = runtime.tensor(numbers(20, 3), [5, 4]);
    const y = autocast({ dtype: "bfloat16" }, () => linear(x, weight, bias));
    const gradient = runtime.tensor(numbers(15, 4), [5, 3], { dtype: "bfloat16" });
    const [ofWeight, ofBias] = grad(y, [weight, bias], { gradient }) as [Tensor, Tensor];
    expect([y, ofWeight, ofBias].map(({ dtype }) => dtype)).toEqual([
      "bfloat16",
      "float32",
      "float32",
    ]);
    const rows = gradient.to("float32");
    for (const [got, want] of [
      [ofBias, rows.sum(0)],
      [ofWeight, rows.matmul(x.to("bfloat16").to("float32"), { transA: true })],
    ] as const)
      expect([...(await got.toArray())]).toEqual([
        ...(await want.to("bfloat16").to("float32").toArray()),
      ]);
  });

  test("are the same bits in a checkpoint", async () => {
    const gradientsOf = async (isCheckpoint: boolean): Promise<readonly number[][]> => {
      const runtime = cpuRuntime();
      const { weight, bias } = layerOf(runtime, 6, 5);
      const layer = (x: Tensor): Tensor => linear(x, weight, bias).tanh();
      await runtime.step(() => {
        const x = runtime.tensor(numbers(24, 3), [4, 6]);
        (isCheckpoint ? checkpoint(layer, x) : layer(x)).sum().backward();
        return undefined;
      });
      return Promise.all(
        [weight, bias].map(async ({ grad }) => [...(await (grad as Tensor).toArray())]),
      );
    };
    expect(await gradientsOf(true)).toEqual(await gradientsOf(false));
  });

  test("on a GPU are those of the CPU, with and without passes, whole and in parts", async () => {
    const device = await requestTestDevice();
    const gradientsOf = async (runtime: Runtime, rows: number): Promise<readonly number[][]> => {
      const { weight, bias } = layerOf(runtime, 34, 30);
      const results = await runtime.step(() => {
        const x = runtime.tensor(numbers(rows * 34, 3), [rows, 34]);
        const y = autocast({ dtype: "float16" }, () => linear(x, weight, bias));
        const gradient = runtime.tensor(numbers(rows * 30, 4), [rows, 30]).to("float16");
        const [ofWeight, ofBias] = grad(y, [weight, bias], { gradient }) as [Tensor, Tensor];
        return [ofWeight.mul(2), ofBias];
      });
      return Promise.all(results.map(async (each) => [...(await each.toArray())]));
    };
    for (const rows of [60, 1030]) {
      const fused = gpuRuntime(device);
      const got = await gradientsOf(fused, rows);
      expect(launchesOf(fused.lastPlan as Plan).at(-1)).toMatch(/\+scale \(2 results\)$/);
      expect(got).toEqual(await gradientsOf(gpuRuntime(device, { passes: [] }), rows));
      const want = await gradientsOf(cpuRuntime(), rows);
      const worst = got.map((values, i) =>
        Math.max(...values.map((value, j) => Math.abs(value - (want[i]?.[j] as number)))),
      );
      expect(Math.max(...worst)).toBeLessThan(2 ** -6);
    }
  });
});
