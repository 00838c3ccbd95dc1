import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  dumpPlan,
  linear,
  type Plan,
  RecordingError,
  type Runtime,
  type Tensor,
  type Variable,
} from "../src/index.js";

// Rules 6 to 8 of the semantics of recordings, on the CPU runner.

const read = async (tensor: Tensor | undefined): Promise<number[]> => [
  ...((await tensor?.toArray()) ?? []),
];
const planOf = (runtime: Runtime): Plan => runtime.lastPlan as Plan;
const copies = (plan: Plan): number =>
  dumpPlan(plan)
    .split("\n")
    .filter((line) => / identity /.test(line)).length;

describe("variables (6)", () => {
  test("a read sees the version at its place", async () => {
    const runtime = cpuRuntime();
    const v = runtime.variable([1], [1]);
    const seen = await runtime.step(() => {
      const first = v.mul(1);
      v.assign(v.add(10));
      const second = v.mul(1);
      v.assign(runtime.tensor([100]));
      return [first, second, v.mul(1)];
    });
    expect(await Promise.all(seen.map((t) => t.item()))).toEqual([1, 11, 100]);
    expect(await v.item()).toBe(100);
  });

  test("an assignment outside a step holds for what comes after it", async () => {
    const runtime = cpuRuntime();
    const v = runtime.variable([1], [1]);
    const before = v.add(0);
    v.assign(runtime.tensor([2]));
    const after = v.add(0);
    expect([await before.item(), await after.item(), await v.item()]).toEqual([1, 2, 2]);
  });

  test.each([
    [0, 5],
    [1, 1],
    [-3, 1],
  ])("a guard of %d leaves %d", async (guard, expected) => {
    const runtime = cpuRuntime();
    const v = runtime.variable([1, 1], [2]);
    await runtime.step(() => {
      const unless = runtime.tensor([guard]).mul(1);
      v.assign(runtime.tensor([5, 5]), { unless });
      return 0;
    });
    expect(await read(v)).toEqual([expected, expected]);
  });

  test("an assignment casts to the variable's dtype", async () => {
    const runtime = cpuRuntime();
    const half = runtime.variable([0], [1], { dtype: "float16" });
    half.assign(runtime.tensor([1 + 2 ** -12]));
    expect(await half.item()).toBe(1);
    const single = runtime.variable([0], [1]);
    single.assign(half);
    expect(await single.item()).toBe(1);
  });

  test("a variable may be assigned from one beside it", async () => {
    const runtime = cpuRuntime();
    const storage = runtime.target.allocateResident(512);
    const a = runtime.variableAt({ storage, offset: 0 }, [2], "float32", "a");
    const b = runtime.variableAt({ storage, offset: 256 }, [2], "float32", "b");
    await runtime.step(() => {
      a.assign(runtime.tensor([1, 2]));
      b.assign(a);
      a.assign(b.mul(10));
      return 0;
    });
    expect([await read(a), await read(b)]).toEqual([
      [10, 20],
      [1, 2],
    ]);
  });

  test("a backward pass reads the integers of the forward pass", async () => {
    const runtime = cpuRuntime();
    const index = runtime.variable(Uint32Array.of(2, 0), [2], { name: "index" });
    const x = runtime.variable([1, 2, 3], [3], { requiresGrad: true });
    const picked = await runtime.step(() => {
      const picked = x.gather(0, index);
      index.assign(runtime.tensor(Uint32Array.of(1, 1)));
      picked
        .mul(runtime.tensor([10, 20]))
        .sum()
        .backward();
      return picked;
    });
    expect(await read(picked)).toEqual([3, 1]);
    expect(await read(x.grad as Variable)).toEqual([20, 0, 10]);
    expect(await read(index)).toEqual([1, 1]);
  });

  test("a later reader of an older version gets a copy, which the plan shows", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([2, 3], [2], { requiresGrad: true });
    const x = runtime.variable([5, 7], [2], { requiresGrad: true });
    const step = (assignFirst: boolean): Promise<Tensor> =>
      runtime.step(() => {
        const product = w.mul(x).sum();
        if (assignFirst) w.assign(runtime.tensor([100, 100]).mul(1));
        product.backward();
        if (!assignFirst) w.assign(runtime.tensor([100, 100]).mul(1));
        const gradient = x.grad as Variable;
        x.zeroGrad();
        w.zeroGrad();
        return gradient.mul(1);
      });
    expect(await read(await step(false))).toEqual([2, 3]);
    const inPlace = copies(planOf(runtime));
    expect(await read(w)).toEqual([100, 100]);
    expect(await read(await step(true))).toEqual([100, 100]);
    expect(copies(planOf(runtime))).toBe(inPlace + 1);
  });

  test("backward reads the version of its forward, however many assignments came between", async () => {
    const runtime = cpuRuntime();
    const a = runtime.variable([2], [1], { requiresGrad: true });
    const b = runtime.variable([3], [1], { requiresGrad: true });
    const [first, second] = await runtime.step(() => {
      const one = a.mul(b).sum();
      a.assign(runtime.tensor([100]));
      const two = a.mul(b).sum();
      a.assign(runtime.tensor([200]));
      a.assign(runtime.tensor([300]));
      one.backward();
      const first = b.grad?.mul(1) as Tensor;
      b.zeroGrad();
      two.backward();
      return [first, b.grad?.mul(1) as Tensor];
    });
    expect([await first?.item(), await second?.item()]).toEqual([2, 100]);
    expect(await a.item()).toBe(300);
  });
});

describe("backward in a later step (7)", () => {
  const setup = (): { runtime: Runtime; a: Variable; b: Variable } => {
    const runtime = cpuRuntime();
    return {
      runtime,
      a: runtime.variable([2], [1], { requiresGrad: true, name: "a" }),
      b: runtime.variable([3], [1], { requiresGrad: true, name: "b" }),
    };
  };

  test("needs keepGraph, and says so", async () => {
    const { runtime, a, b } = setup();
    const loss = await runtime.step(() => a.mul(b).tanh().sum());
    await expect(
      runtime.step(() => {
        loss.backward();
        return 0;
      }),
    ).rejects.toThrow(/run that step with \{ keepGraph: true \}/);
  });

  test("works with keepGraph, and then frees what was kept for it", async () => {
    const { runtime, a, b } = setup();
    let product: Tensor | undefined;
    const loss = await runtime.step(
      () => {
        product = a.mul(b);
        return product.square().sum();
      },
      { keepGraph: true },
    );
    expect(product?.storage.isResident).toBe(true);
    await runtime.step(() => {
      loss.backward();
      return 0;
    });
    expect([await read(a.grad), await read(b.grad)]).toEqual([[36], [24]]);
    expect(product?.storage.isResident).toBe(false);
    expect(await loss.item()).toBe(36);
  });

  test("a saved variable that has moved on is refused with both versions", async () => {
    const { runtime, a, b } = setup();
    const loss = await runtime.step(() => a.mul(b).sum(), { keepGraph: true });
    await runtime.step(() => {
      a.assign(runtime.tensor([9]));
      return 0;
    });
    const later = (): Promise<number> =>
      runtime.step(() => {
        a.assign(runtime.tensor([10]));
        loss.backward();
        return 0;
      });
    await expect(later()).rejects.toThrow(RecordingError);
    await expect(later()).rejects.toThrow(
      /backward\(\) needs a at version 0, but it was assigned since and has version \d+/,
    );
    expect(await a.item()).toBe(9);
  });

  test("the graph is freed, unless it is retained", async () => {
    const { runtime, a, b } = setup();
    await runtime.step(() => {
      const loss = a.mul(b).sum();
      loss.backward({ retainGraph: true });
      loss.backward();
      expect(() => loss.backward()).toThrow(
        /came to \w+ a second time.*pass \{ retainGraph: true \}/,
      );
      return 0;
    });
    expect([await read(a.grad), await read(b.grad)]).toEqual([[6], [4]]);
  });

  test("a dropped step leaves a kept graph as it was", async () => {
    const { runtime, a, b } = setup();
    const loss = await runtime.step(() => a.mul(b).square().sum(), { keepGraph: true });
    await expect(
      runtime.step(() => {
        loss.backward();
        throw new Error("stop");
      }),
    ).rejects.toThrow("stop");
    expect(a.grad).toBeUndefined();
    await runtime.step(() => {
      loss.backward();
      return 0;
    });
    expect(await read(a.grad)).toEqual([36]);
  });
});

describe("gradients (8)", () => {
  test("are float32 variables, absent until backward and after zeroGrad", async () => {
    const runtime = cpuRuntime();
    const half = runtime.variable([1, 2], [2], { requiresGrad: true, dtype: "float16" });
    expect(half.grad).toBeUndefined();
    await runtime.step(() => {
      half.mul(half).sum().backward();
      return 0;
    });
    expect([half.grad?.dtype, await read(half.grad)]).toEqual(["float32", [2, 4]]);
    half.zeroGrad();
    expect(half.grad).toBeUndefined();
  });

  test("the first backward assigns, the next adds", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1], [1], { requiresGrad: true });
    const backward = (factor: number): Promise<number> =>
      runtime.step(() => {
        w.mul(factor).sum().backward();
        return 0;
      });
    await backward(2);
    await backward(3);
    expect(await read(w.grad)).toEqual([5]);
    w.zeroGrad();
    await backward(7);
    expect(await read(w.grad)).toEqual([7]);
  });

  test("only leaves that the result depends on get one", async () => {
    const runtime = cpuRuntime();
    const used = runtime.variable([1], [1], { requiresGrad: true });
    const unused = runtime.variable([1], [1], { requiresGrad: true });
    const constant = runtime.variable([1], [1]);
    await runtime.step(() => {
      used.mul(constant).sum().backward();
      return 0;
    });
    expect([used.grad !== undefined, unused.grad, constant.grad]).toEqual([
      true,
      undefined,
      undefined,
    ]);
  });

  test("accumulated over steps they are those of one large batch, bit for bit", async () => {
    // Small whole numbers and powers of two: every sum is exact in any order.
    const rows = 16;
    const inputs = Float32Array.from({ length: rows * 4 }, (_, i) => ((i * 7) % 11) - 5);
    const gradientOf = async (steps: number): Promise<number[]> => {
      const runtime = cpuRuntime();
      const w = runtime.variable([1, -2, 3, -4, 2, 2, -1, 1], [2, 4], { requiresGrad: true });
      const size = rows / steps;
      for (let step = 0; step < steps; step++)
        await runtime.step(() => {
          const batch = inputs.subarray(step * size * 4, (step + 1) * size * 4);
          linear(runtime.tensor(batch, [size, 4]), w)
            .square()
            .mean()
            .mul(1 / steps)
            .backward();
          return 0;
        });
      return read(w.grad);
    };
    const whole = await gradientOf(1);
    expect(new Set(whole).size).toBeGreaterThan(4);
    for (const steps of [2, 4, 8]) expect(await gradientOf(steps)).toEqual(whole);
  });
});
