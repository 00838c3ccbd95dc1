import { autocast } from "@halfstep/autocast";
import { describe, expect, test } from "vitest";
import { cpuRuntime, linear, type Plan, type Runtime, type Tensor } from "../src/index.js";

// Rule 12 of the semantics of recordings: which changes need a new plan.

/** The plan of each step of a run. */
async function plansOf(
  runtime: Runtime,
  steps: readonly (() => unknown)[],
): Promise<readonly Plan[]> {
  const plans: Plan[] = [];
  for (const step of steps) {
    await runtime.step(step as () => number);
    plans.push(runtime.lastPlan as Plan);
  }
  return plans;
}

/** The indices of plans among the known ones; -1 for new ones. */
const indexesIn = (known: readonly Plan[], plans: readonly Plan[]): number[] =>
  plans.map((plan) => known.indexOf(plan));

const areSame = (plans: readonly Plan[]): boolean => new Set(plans).size === 1;
const areApart = (plans: readonly Plan[]): boolean => new Set(plans).size === plans.length;

describe("a plan is used again", () => {
  test("for other data, numbers and versions", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1, 2], [1, 2], { requiresGrad: true });
    const losses: Tensor[] = [];
    const train = (x: number, lr: number) => (): number => {
      const loss = linear(runtime.tensor([x, 1], [1, 2]), w)
        .add(x)
        .square()
        .sum()
        .keep();
      loss.backward();
      w.assign(w.sub((w.grad as Tensor).mul(lr)));
      w.zeroGrad();
      losses.push(loss);
      return 0;
    };
    const plans = await plansOf(runtime, [train(1, 0.5), train(2, 0.25), train(3, 0.125)]);
    expect(areSame(plans)).toBe(true);
    // By hand: y = w·[x, 1] + x, w ← w − lr·2y·[x, 1].
    expect(await Promise.all(losses.map((loss) => loss.item()))).toEqual([16, 36, 169]);
  });

  test("for other variables of the same shapes", async () => {
    const runtime = cpuRuntime();
    const variables = [1, 10].map((value) => runtime.variable([value], [1]));
    const plans = await plansOf(
      runtime,
      variables.map((v) => () => v.assign(v.mul(3))),
    );
    expect(areSame(plans)).toBe(true);
    expect(await Promise.all(variables.map((v) => v.item()))).toEqual([3, 30]);
  });

  test("by everything but the runtime that made it", async () => {
    const [a, b] = [cpuRuntime(), cpuRuntime()];
    const plans = [
      ...(await plansOf(a, [() => a.tensor([1]).add(1)])),
      ...(await plansOf(b, [() => b.tensor([1]).add(1)])),
    ];
    expect(areApart(plans)).toBe(true);
    expect(plans[0]).toEqual(plans[1]);
  });
});

describe("a plan is made anew", () => {
  const runtime = cpuRuntime();
  const w = runtime.variable([1, 2], [2], { requiresGrad: true });
  const v = runtime.variable([3, 4], [2], { requiresGrad: true });

  test.each<[string, readonly (() => unknown)[]]>([
    ["shapes", [2, 4, 6].map((n) => () => runtime.zeros([n]).add(1))],
    ["dtypes", [() => w.mul(v), () => w.to("float16").mul(v.to("float16")).to("float32")]],
    ["ops", [() => w.mul(v), () => w.add(v)]],
    ["static attributes", [0, 1].map((axis) => () => runtime.zeros([2, 2]).sum(axis))],
    ["wiring", [() => w.sub(v).mul(w), () => w.sub(v).mul(v)]],
    ["aliasing of variables", [() => w.mul(v), () => w.mul(w)]],
    [
      "what is kept",
      [
        () => w.mul(v).add(1),
        () => {
          const product = w.mul(v);
          return [product, product.add(1)];
        },
        () => void w.mul(v).add(1),
      ],
    ],
    [
      "an autocast region",
      [
        () => linear(w.reshape([1, 2]), v.reshape([1, 2])),
        () => autocast({ dtype: "float16" }, () => linear(w.reshape([1, 2]), v.reshape([1, 2]))),
        () => autocast({ dtype: "bfloat16" }, () => linear(w.reshape([1, 2]), v.reshape([1, 2]))),
      ],
    ],
    ["host data in place of a variable", [() => w.mul(v), () => w.mul(runtime.tensor([1, 2]))]],
  ])("for other %s", async (_, steps) => {
    // Values that do not change from one step to the next are then read as 16-bit copies.
    await plansOf(runtime, [...steps, ...steps]);
    const plans = await plansOf(runtime, steps);
    expect(areApart(plans)).toBe(true);
    expect(indexesIn(plans, await plansOf(runtime, steps))).toEqual([...steps.keys()]);
  });

  test("for a gradient that is present", async () => {
    const step = (): number => {
      w.mul(v.detach()).sum().backward();
      return 0;
    };
    w.zeroGrad();
    const plans = await plansOf(runtime, [step, step, step]);
    expect(indexesIn(plans, plans)).toEqual([0, 1, 1]);
    w.zeroGrad();
    expect(indexesIn(plans, await plansOf(runtime, [step]))).toEqual([0]);
  });
});

test("64 plans are kept, those used last", async () => {
  const runtime = cpuRuntime();
  const step = (n: number) => (): Tensor => runtime.zeros([n]).add(1);
  const sizes = Array.from({ length: 64 }, (_, i) => i + 1);
  const first = await plansOf(runtime, sizes.map(step));
  expect(areApart(first)).toBe(true);
  // Size 1 is used again, so that the 65th plan evicts size 2.
  const later = await plansOf(runtime, [step(1), step(65), step(1), step(3), step(2)]);
  expect(indexesIn(first, later)).toEqual([0, -1, 0, 2, -1]);
  expect(later[4]).toEqual(first[1]);
});
