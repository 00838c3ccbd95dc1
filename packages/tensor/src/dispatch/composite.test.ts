import { autocast, type CastPolicy, DTypeError } from "@halfstep/autocast";
import { describe, expect, expectTypeOf, test } from "vitest";
import { type Composite, composite, cpuRuntime, linear, type Tensor, traceOps } from "../index.js";

/** Records the dtypes in which its body and the ops there get their tensors. */
const spyOf = (castPolicy: CastPolicy) =>
  composite(
    { name: "spy", castPolicy },
    (x: Tensor, options: { weight?: Tensor; labels?: Tensor } = {}): string[] =>
      [x, options.weight, options.labels, x.matmul(x)].flatMap((seen) => seen?.dtype ?? []),
  );

describe("inside a region", () => {
  test.each([
    ["float32", ["float32", "float32", "uint32", "float32"]],
    ["lowerPrecision", ["float16", "float16", "uint32", "float16"]],
    ["promote", ["float32", "float32", "uint32", "float32"]],
    ["none", ["bfloat16", "float32", "uint32", "float16"]],
  ] as const)("%s: the body sees what the policy says, and its ops do not cast", (policy, seen) => {
    const runtime = cpuRuntime();
    const x = runtime.zeros([2, 2], { dtype: "bfloat16" });
    const weight = runtime.zeros([2]);
    const labels = runtime.tensor(Uint32Array.of(1));
    const spy = spyOf(policy);
    expect(autocast({ dtype: "float16" }, () => spy(x, { weight, labels }))).toEqual(seen);
  });

  test("a policy by name replaces its own", () => {
    const x = cpuRuntime().zeros([2, 2]);
    const region = { dtype: "float16", policies: { spy: "lowerPrecision" } } as const;
    expect(autocast(region, () => spyOf("float32")(x))).toEqual(["float16", "float16"]);
  });

  test("a banned one is refused with its remedy", () => {
    const spy = spyOf({ banned: "spy is unsafe here: use spyWithLogits" });
    const x = cpuRuntime().zeros([2, 2]);
    expect(() => autocast({ dtype: "float16" }, () => spy(x))).toThrow(DTypeError);
    expect(() => autocast({ dtype: "float16" }, () => spy(x))).toThrow("use spyWithLogits");
    expect(spy(x)).toEqual(["float32", "float32"]);
  });
});

test("outside of regions nothing is cast", () => {
  const x = cpuRuntime().zeros([2, 2], { dtype: "float16" });
  expect(spyOf("float32")(x)).toEqual(["float16", "float16"]);
});

test("gradients reach the arguments through the casts", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([3], [1], { requiresGrad: true });
  const square = composite({ name: "square", castPolicy: "lowerPrecision" }, (v: Tensor) =>
    v.mul(v),
  );
  const y = autocast({ dtype: "float16" }, () => square(x));
  expect(y.dtype).toBe("float16");
  y.backward();
  expect(x.grad?.dtype).toBe("float32");
  expect(await x.grad?.item()).toBe(6);
});

test("it is a function with the name and policy that docs are made of", () => {
  const spy = spyOf("float32");
  expect([spy.name, spy.castPolicy]).toEqual(["spy", "float32"]);
  expectTypeOf(spy).toExtend<
    Composite<(x: Tensor, options?: { weight?: Tensor; labels?: Tensor }) => string[]>
  >();
});

test("plans, origins and traces call a composite by one name", async () => {
  const runtime = cpuRuntime({ provenance: "always" });
  const weight = runtime.variable(Float32Array.of(3e38, 1), [1, 2], { requiresGrad: true });
  const x = runtime.variable(Float32Array.of(1, 2), [1, 2]);
  const forward = (): Tensor => linear(x, weight, runtime.zeros([1])).relu();
  const traced: string[] = [];
  const plan = runtime.plan(() =>
    traceOps(
      ({ op }) => traced.push(op),
      () => forward().backward({ gradient: runtime.full([1, 1], 1) }),
    ),
  );
  const named = plan.launches.flatMap(({ note }) => note?.ops ?? []);
  expect(traced.slice(0, 2)).toEqual(["linear", "relu"]);
  const forwards = named.filter(({ backwardOf }) => !backwardOf).map(({ op }) => op);
  expect([...new Set(forwards)]).toEqual(["linear", "relu"]);
  expect(named.flatMap(({ backwardOf }) => backwardOf ?? [])).toContain("linear");
  const originOf = async (step: () => Tensor): Promise<string | undefined> => {
    using _ = await runtime.step(step);
    return (await runtime.nonFiniteOrigin())?.op;
  };
  expect(await originOf(() => linear(x.mul(2), weight))).toBe("linear");
  const ofGradient = await originOf(() => {
    const y = linear(x, weight);
    y.backward({ gradient: runtime.full([1, 1], Number.POSITIVE_INFINITY) });
    return y;
  });
  expect(ofGradient).toBe("matmul in the backward of linear");
});
