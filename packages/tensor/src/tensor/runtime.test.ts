import { autocast } from "@halfstep/autocast";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import {
  ClosedTensorError,
  castAll,
  castTo,
  cpuRuntime,
  defineOp,
  gpuRuntime,
  linear,
  noGrad,
  RecordingError,
  type Runtime,
  relu,
  type TensorSpec,
  traceOps,
} from "../index.js";

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ...(await testTiers()).map((tier): [string, () => Promise<Runtime>] => [
    `GPU, ${tier}`,
    async () => gpuRuntime(await requestTestDevice({ tier })),
  ]),
];

test.each(runtimes)("ops outside a step are computed when they are read: %s", async (_, open) => {
  const runtime = await open();
  const a = runtime.tensor([1, 2, 3, 4, 5, 6], [2, 3]);
  const b = runtime.tensor([10, 20, 30]);
  const sum = a.add(b).mul(2);
  expect([...(await sum.toArray())]).toEqual([22, 44, 66, 28, 50, 72]);
  expect([...(await sum.add(1).toArray())]).toEqual([23, 45, 67, 29, 51, 73]);
});

test.each(runtimes)("results without elements, of no launch, can be read: %s", async (_, open) => {
  const runtime = await open();
  const product = () => runtime.variable([], [0, 3]).matmul(runtime.variable([1, 2, 3], [3, 1]));
  for (const empty of [product(), await runtime.step(product)]) {
    expect(empty.shape).toEqual([0, 1]);
    expect([...(await empty.toArray())]).toEqual([]);
  }
});

test.each(runtimes)("a training step moves a variable by its gradient: %s", async (_, open) => {
  const runtime = await open();
  const weight = runtime.variable([1, -2], [1, 2], { requiresGrad: true, name: "weight" });
  const losses: number[] = [];
  for (let step = 0; step < 3; step++) {
    using loss = await runtime.step(() => {
      const x = runtime.tensor([1, 2, 3, 4], [2, 2]);
      const y = runtime.tensor([5, 11], [2, 1]);
      const error = linear(x, weight).sub(y).square().mean();
      error.backward();
      const gradient = weight.grad;
      if (gradient) weight.assign(weight.sub(gradient.mul(0.01)));
      weight.zeroGrad();
      return error;
    });
    losses.push(await loss.item());
  }
  // Computed by hand in float64: w ← w − 0.01 · ∇.
  const w = [1, -2];
  const expected: number[] = [];
  for (let step = 0; step < 3; step++) {
    const e = [
      (w[0] as number) + 2 * (w[1] as number) - 5,
      3 * (w[0] as number) + 4 * (w[1] as number) - 11,
    ] as [number, number];
    expected.push((e[0] ** 2 + e[1] ** 2) / 2);
    w[0] = (w[0] as number) - 0.01 * (e[0] + 3 * e[1]);
    w[1] = (w[1] as number) - 0.01 * (2 * e[0] + 4 * e[1]);
  }
  for (const [i, loss] of losses.entries()) expect(loss).toBeCloseTo(expected[i] as number, 3);
});

test.each(runtimes)(
  "autocast lowers a product and leaves its gradient float32: %s",
  async (_, open) => {
    const runtime = await open();
    const weight = runtime.variable([0.1, 0.2], [1, 2], { requiresGrad: true });
    const { y, gradient } = await runtime.step(() => {
      const x = runtime.tensor([1 + 2 ** -12, 3], [1, 2]);
      const y = autocast({ dtype: "float16" }, () => linear(x, weight));
      y.sum().backward();
      return { y, gradient: weight.grad };
    });
    expect(y.dtype).toBe("float16");
    expect(gradient?.dtype).toBe("float32");
    expect([...((await gradient?.toArray()) ?? [])]).toEqual([1, 3]);
  },
);

test("a tensor of a closed step is refused with the remedy", async () => {
  const runtime = cpuRuntime();
  const outer = await runtime.step(() => {
    const inner = runtime.tensor([1]).add(1);
    return { read: () => inner.add(1) };
  });
  expect(() => outer.read()).toThrow(ClosedTensorError);
  expect(() => outer.read()).toThrow(/keep\(\)/);
});

test("a step that throws leaves everything as it was", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2], [2], { requiresGrad: true });
  await expect(
    runtime.step(() => {
      weight.square().sum().backward();
      weight.assign(weight.mul(3));
      throw new Error("no");
    }),
  ).rejects.toThrow("no");
  expect(weight.grad).toBeUndefined();
  expect([...(await weight.toArray())]).toEqual([1, 2]);
});

test("a step refuses promises and reads", async () => {
  const runtime = cpuRuntime();
  // @ts-expect-error a step's callback is synchronous
  await expect(runtime.step(async () => 1)).rejects.toThrow(TypeError);
  await expect(
    runtime.step(() => {
      void runtime
        .tensor([1])
        .item()
        .catch(() => {});
      return runtime.flush().catch(() => {}) as unknown as number;
    }),
  ).rejects.toThrow(TypeError);
  const one = runtime.tensor([1]);
  let failure: unknown;
  await runtime.step(() => {
    one.item().catch((error: unknown) => {
      failure = error;
    });
    return 0;
  });
  expect(failure).toBeInstanceOf(RecordingError);
});

test("backward reads the version that its forward read", async () => {
  const runtime = cpuRuntime();
  const a = runtime.variable([2], [1], { requiresGrad: true });
  const b = runtime.variable([3], [1], { requiresGrad: true });
  const gradient = await runtime.step(() => {
    const product = a.mul(b).sum();
    a.assign(runtime.tensor([100]));
    product.backward();
    return b.grad;
  });
  expect([...((await gradient?.toArray()) ?? [])]).toEqual([2]);
  expect([...(await a.toArray())]).toEqual([100]);
});

test("an op that fails outside a step leaves the others readable", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2]);
  const y = x.add(2);
  x.dispose();
  expect(() => x.add(1)).toThrow(ClosedTensorError);
  const fails = defineOp<null>({
    name: "fails",
    castPolicy: "none",
    shape: ([spec]) => [spec as TensorSpec],
    forward() {
      throw new Error("no such kernel");
    },
    backward: "none",
  });
  expect(() => fails.apply([y], null)).toThrow("no such kernel");
  expect([...(await y.toArray())]).toEqual([3, 4]);
});

test("an operand that is no tensor is named", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2]);
  for (const [value, named] of [
    [undefined, "add(a, b): b is missing; it must be a tensor or a number"],
    [true, "add(a, b): b must be a tensor or a number, not true"],
    [[1, 2], "add(a, b): b must be a tensor or a number, not [1,2]"],
  ] as const) {
    // @ts-expect-error a plain value where a tensor belongs
    expect(() => x.add(value)).toThrow(named);
  }
  // @ts-expect-error a list where a tensor belongs
  expect(() => relu([x], null)).toThrow("relu(x): takes 1 argument, not 2");
  // @ts-expect-error a tensor where a list of them belongs
  expect(() => relu.apply(x, null)).toThrow("relu.apply(inputs, attributes?): inputs must be");
});

test.each(runtimes)(
  "an input is what the host's array held when it was given: %s",
  async (_, open) => {
    const runtime = await open();
    const batch = Float32Array.of(1, 2);
    const tensors = await runtime.step(() => {
      const first = runtime.tensor(batch).mul(2);
      batch.fill(3);
      return [first, runtime.tensor(batch).mul(2)] as const;
    });
    const results = await Promise.all(tensors.map((each) => each.toArray()));
    expect(results.map((values) => [...values])).toEqual([
      [2, 4],
      [6, 6],
    ]);
  },
);

test("a step calls its function later: until it resolves, arrays stay as they are", async () => {
  const runtime = cpuRuntime();
  const called: string[] = [];
  const step = runtime.step(() => void called.push("fn"));
  called.push("step returned");
  await step;
  expect(called).toEqual(["step returned", "fn"]);
});

test("a step inside a region, which ends before it records, is refused and never trains", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1], [1]);
  const steps: Promise<void>[] = [];
  const train = (): void => {
    const step = runtime.step(() => weight.assign(weight.add(1)));
    step.catch(() => {});
    steps.push(step);
  };
  const regions: Readonly<Record<string, (fn: () => unknown) => unknown>> = {
    "step() inside noGrad()": noGrad,
    "step() inside autocast()": (fn) => autocast({ dtype: "float16" }, fn as () => void),
    "step() inside traceOps()": (fn) => traceOps(() => {}, fn),
    "step() inside a step": (fn) => runtime.dryRun(fn as () => void),
  };
  for (const [message, region] of Object.entries(regions)) {
    region(train);
    await expect(steps.at(-1)).rejects.toThrow(message);
    // What returns the promise is refused by the region itself, and leaves no unhandled rejection.
    expect(() => region(() => runtime.step(() => weight.assign(weight.add(1))))).toThrow("promise");
  }
  expect(await weight.item()).toBe(1);
  train();
  await steps.at(-1);
  expect(await weight.item()).toBe(2);
});

test("data that would be stored as NaN is refused, in a step and outside", async () => {
  const runtime = cpuRuntime();
  const cases = [
    [
      [
        [1, 2],
        [3, 4],
      ],
      "element 0 of its data is 1,2, not a number: pass one flat list",
    ],
    [[1, undefined], "element 1 of its data is undefined"],
    [{ length: 1, get: () => 1 }, "neither a typed array nor a list of numbers"],
  ] as const;
  for (const [data, message] of cases) {
    // @ts-expect-error none of these are numbers
    const make = (): unknown => runtime.tensor(data);
    expect(make).toThrow(message);
    await expect(runtime.step(() => void make())).rejects.toThrow(message);
  }
});

test("a dtype that tensors do not have is refused, with those that there are", () => {
  const runtime = cpuRuntime();
  const dtype = "float64" as "float32";
  const ofFloat64 = defineOp({
    ...{ name: "ofFloat64", castPolicy: "none", backward: "none" },
    shape: () => [{ shape: [1], dtype }],
    forward() {},
  });
  for (const make of [
    () => runtime.tensor([1], [1], { dtype }),
    () => runtime.variable([1], [1], { dtype }),
    () => runtime.zeros([1], { dtype }),
    () => runtime.full([1], 1, { dtype }),
    () => castTo(runtime.tensor([1]), dtype),
    () => castAll([runtime.tensor([1])], dtype),
    () => ofFloat64.apply([runtime.tensor([1])], undefined),
  ])
    expect(make).toThrow(/^there is no dtype "float64": tensors have float32, float16, /);
});

test("what a runtime is given is checked in a line", async () => {
  const runtime = cpuRuntime();
  const refused: readonly [() => unknown, string][] = [
    [() => runtime.zeros([0.5, 2]), "runtime.zeros(shape, options?): shape must be a shape"],
    [() => runtime.zeros(3 as never), "shape must be a shape: a list of whole numbers from 0 on"],
    [() => runtime.zeros([-1, 2]), "not [-1,2]"],
    [() => runtime.zeros([1], "float16" as never), "options must be options { dtype, requires"],
    [() => runtime.zeros([1], { dtyp: "float16" } as never), "has no dtyp; did you mean dtype?"],
    [() => runtime.full([2], undefined as never), "value is missing; it must be a number"],
    [() => runtime.full(3 as never, 1), "runtime.full(shape, value, options?): shape must be"],
    [() => runtime.tensor(undefined as never, [2]), "data is missing; it must be a number or nu"],
    [
      () => runtime.tensor(runtime.zeros([1]) as never),
      "numbers: a typed array or a list, not a t",
    ],
    ...[new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), new Set([1]), "1", 1n].flatMap(
      (wrong): [() => unknown, string][] => [
        [() => runtime.tensor(wrong as never), "data must be a number or numbers: a typed array"],
        [() => runtime.variable(wrong as never, [1]), "data must be numbers: a typed array or a"],
      ],
    ),
    [() => runtime.variable(5 as never, [1]), "data must be numbers: a typed array or a list"],
    [() => runtime.tensor([1], [1], { requireGrad: true } as never), "did you mean requiresGrad?"],
    [() => runtime.variable([1, 2], undefined as never), "shape is missing; it must be a shape"],
    [() => runtime.variable([1], [1], { requires_grad: true } as never), "has no requires_grad"],
    [
      () => runtime.variable([1], [1], { dtype: "int32", requiresGrad: true }),
      "variable: only floating tensors have gradients, and this one is int32",
    ],
    [
      () => runtime.tensor(Uint32Array.of(1), [1], { requiresGrad: true }),
      "tensor: only floating tensors have gradients, and this one is uint32",
    ],
    [() => cpuRuntime({ arithmetics: "float64" } as never), "did you mean arithmetic?"],
    [() => cpuRuntime({ arithmetic: "f64" } as never), 'must be "float32" or "float64"'],
    [() => cpuRuntime({ passes: ["fuse!"] } as never), "options.passes must be a list of passes: "],
    [
      () => gpuRuntime(Promise.resolve() as never),
      "device must be a device: await requestDevice()",
    ],
  ];
  for (const [make, message] of refused) expect(make).toThrow(message);
  await expect(runtime.step(undefined as never)).rejects.toThrow("fn is missing; it must be a fun");
  await expect(runtime.step(() => {}, { keepgraph: true } as never)).rejects.toThrow("keepGraph?");
});
