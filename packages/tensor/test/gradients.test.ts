import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { type Expression, elementwise } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  defineOp,
  gpuRuntime,
  grad,
  NoSecondDerivativeError,
  type Operand,
  type Tensor,
  type TensorSpec,
} from "../src/index.js";
import { allPasses } from "../src/internals.js";
import * as further from "../src/ops/functional.js";
import * as first from "../src/ops/index.js";
import { gradientCases } from "./gradient-cases.js";
import {
  type GradientCase,
  gradientDifferences,
  gradientMismatches,
  numbers,
  secondDerivativeMismatches,
} from "./gradient-check.js";

/**
 * Exports through which no gradient flows, beside the ops whose backward is "none": functions that change
 * variables.
 */
const writes = ["accumulate", "assign"];
/** Functions whose results are masks, decisions or drawn by chance. */
const constants = ["eq", "ne", "lt", "le", "gt", "ge", "any", "all", "oneHot", "crfDecode"].concat([
  "argmax",
  "argmin",
  "rand",
  "randn",
  "bernoulli",
]);

/** Functions that make tensors without data, or read them. */
const made = ["arange", "linspace", "eye", "argsort", "unique", "nonzero"].concat([
  "randint",
  "randperm",
  "multinomial",
]);

const isDifferentiable = ([name, op]: readonly [string, unknown]): boolean =>
  typeof op === "function" &&
  ![...writes, ...constants, ...made].includes(name) &&
  !("backward" in op && op.backward === "none");

test("every differentiable op has gradient checks", () => {
  const exported = Object.entries({ ...first, ...further })
    .filter(isDifferentiable)
    .map(([name]) => name);
  // The indices of ops do not export casts: dispatch makes them.
  expect(Object.keys(gradientCases).sort()).toEqual([...exported, "castTo"].sort());
  const empty = Object.entries(gradientCases).filter(([, { cases }]) => cases.length === 0);
  expect(empty).toEqual([]);
});

test("the checks find a wrong derivative", async () => {
  const cubeBy = (factor: number) =>
    defineOp<null>({
      name: "cube",
      castPolicy: "none",
      shape: ([x]) => [x as TensorSpec],
      forward({ target, inputs: [x], outputs: [y] }) {
        target.launch(elementwise(cube, [x as Operand], y as Operand));
      },
      backward: ({ inputs: [x], gradients: [g] }) => [
        (g as Tensor).mul((x as Tensor).square().mul(factor)),
      ],
    });
  const caseOf = (factor: number): GradientCase => ({
    name: "cube",
    inputs: [{ shape: [3], values: numbers(3, 1) }],
    apply: (inputs) => cubeBy(factor).apply(inputs, null),
  });
  const cube: Expression = {
    name: "cube",
    arity: 1,
    wgsl: ([x]) => `${x} * ${x} * ${x}`,
    evaluate: (x) => (x[0] as number) ** 3,
  };
  expect(await gradientMismatches(caseOf(3))).toEqual([]);
  expect(await gradientMismatches(caseOf(3.0001))).toHaveLength(3);
  expect(await secondDerivativeMismatches(caseOf(3))).toEqual([]);
  expect(await secondDerivativeMismatches(caseOf(3.0001))).not.toEqual([]);
});

describe.each(Object.entries(gradientCases))("%s", (_, { cases, second }) => {
  test.each(cases)("gradient: $name", async (check) => {
    expect(await gradientMismatches(check)).toEqual([]);
  });

  if (second === "checked")
    test.each(cases)("second derivative: $name", async (check) => {
      expect(await secondDerivativeMismatches(check)).toEqual([]);
    });
  else
    test("its second derivative is refused with a remedy", () => {
      const runtime = cpuRuntime({ arithmetic: "float64" });
      for (const { inputs, apply } of cases) {
        const tensors = inputs.map(({ shape, values }) =>
          runtime.tensor(values, shape, { requiresGrad: true }),
        );
        const twice = () => {
          const gradients = grad(apply(tensors, runtime).square().sum(), tensors, {
            createGraph: true,
          });
          return gradients.map((gradient) => gradient && grad(gradient.sum(), tensors));
        };
        expect(twice).toThrow(NoSecondDerivativeError);
      }
    });
});

// Fusion would compile a program for each op's neighbourhood. It changes no bit, as as-if.gpu.test.ts tests.
const passes = allPasses.filter((pass) => pass !== "fuseElementwise");

test.each(await testTiers())(
  "gradients on the GPU, %s tier, are those in float64",
  async (tier) => {
    const runtime = gpuRuntime(await requestTestDevice({ tier }), { passes });
    // In float32, casts round by definition. The kernels' tests compare attention's gradients on the GPU.
    const { castTo: _, scaledDotProductAttention: __, ...others } = gradientCases;
    const last = Object.values(others).map(({ cases }) => cases.at(-1) as GradientCase);
    // In float32 programs have the same text on both tiers: a few cases suffice for the other tier.
    const checks = tier !== "packed" ? last : last.filter((_check, i) => i % 4 === 0);
    expect(await gradientDifferences(runtime, checks)).toEqual([]);
  },
);
