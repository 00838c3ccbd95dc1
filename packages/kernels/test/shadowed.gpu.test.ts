import { isDeepStrictEqual } from "node:util";
import { type Kernel, type KernelScalar, wrapDevice } from "@halfstep/device";
import { requestNullDevice } from "@halfstep/device/node";
import { requestTestDevice } from "@halfstep/device/testing";
import { afterAll, expect, test, vi } from "vitest";
import type { KernelDefinition } from "../src/definition.js";
import type { ElementwiseProgram, Expression } from "../src/elementwise.js";
import type * as kernelModule from "../src/kernel.js";
import { type Launches, mismatches, runOnCpu, runOnGpu, testValues } from "./harness.js";

// Every kernel and every expression of the library, beside a stranger of the same name: neither is taken for the other.

const defined = vi.hoisted(() => {
  // Test files share a process and its modules: the kernels are defined once more here, and counted.
  vi.resetModules();
  return [] as Kernel[];
});
/** Later files do not define kernels that are counted, and therefore held, here. */
afterAll(() => vi.resetModules());

vi.mock("../src/kernel.js", async (importOriginal) => {
  const actual = await importOriginal<typeof kernelModule>();
  const noted = (definition: KernelDefinition) => {
    const kernel = actual.defineWovenKernel(definition);
    defined.push(kernel);
    return kernel;
  };
  return { ...actual, defineKernel: noted, defineWovenKernel: noted };
});

const library = {
  ...(await import("../src/index.js")),
  ...(await import("../src/optimizers.js")),
  ...(await import("../src/amp.js")),
  ...(await import("../src/planner.js")),
};
const { elementwiseKernel } = await import("../src/elementwise.js");
const kernels: readonly Kernel[] = [...defined];

/** A kernel that has the name and the parameters of another one. */
const strangerOf = ({ name, variant, bindings, scalars }: Kernel): Kernel =>
  library.defineKernel({
    ...{ name, variant, bindings, scalars },
    body: () => "@compute @workgroup_size(1) fn main() { /* a stranger */ }",
    workgroups: () => [1, 1, 1],
    reference() {},
  });

test("pipelines of kernels and of strangers of their names are different ones", async () => {
  // The null device does not compile programs: some of them take no float32 where others do.
  const device = await wrapDevice(await requestNullDevice(), { tier: "packed" });
  const wrong: string[] = [];
  expect(kernels.length).toBeGreaterThan(100);
  for (const kernel of kernels) {
    const storage = kernel.bindings.map(({ dtypes }) => ({ dtype: dtypes?.[0] ?? "float32" }));
    const [before, after] = [strangerOf(kernel), strangerOf(kernel)];
    const compiled = [before, kernel, after, kernel, before].map((each) =>
      device.pipelineFor(each, storage),
    );
    const codes = compiled.map(({ program }) => program.code.includes("a stranger"));
    const [first, own, second] = compiled.map(({ pipeline }) => pipeline);
    const isRight =
      isDeepStrictEqual(codes, [true, false, true, false, true]) &&
      own !== first &&
      own !== second &&
      compiled[3] === compiled[1] &&
      compiled[4] === compiled[0];
    if (!isRight) wrong.push(`${kernel.name} ${kernel.variant}`);
  }
  device.destroy();
  expect(wrong).toEqual([]);
});

const isExpression = (value: unknown): value is Expression =>
  typeof value === "object" && value !== null && "evaluate" in value && "arity" in value;

test("expressions and strangers of their names compute in one program what each of them says", async () => {
  const expressions = Object.values(library).filter(isExpression);
  expect(expressions.length).toBeGreaterThan(80);
  const count = 70;
  const below = testValues(count, 1).map((x) => 0.75 + x / 8);
  const above = below.map((x) => x + 0.75);
  const want = new Float64Array(count);
  const steps: ElementwiseProgram["steps"][number][] = [];
  const push = (expression: Expression, operands: readonly number[]): number =>
    steps.push({ expression, operands }) + inputs - 1;
  const inputs = 3;
  let sum = 2;
  const ofIntegers: string[] = [];
  for (const [k, expression] of expressions.entries()) {
    const { name, arity, scalars = 0, result = "float" } = expression;
    // Some are of numbers below 1 only, and some of those above.
    const constants = new Array(scalars).fill(0.5);
    const isFiniteAt = (x: number): boolean =>
      Number.isFinite(expression.evaluate(new Array(arity).fill(x), constants, 1));
    const input = [0.75, 1.5].findIndex(isFiniteAt);
    if (input < 0) {
      ofIntegers.push(name);
      continue;
    }
    const helper = `fn ${name}_of(x: vec4f) -> vec4f { return x * ${k / 1024}; }\n`;
    const stranger: Expression = {
      ...{ name, arity, scalars, functions: helper },
      wgsl: ([x]) => (x === undefined ? `vec4f(${k / 1024})` : `${name}_of(${x})`),
      evaluate: (x) => ((x[0] ?? 1) * k) / 1024,
    };
    const operands = new Array(arity).fill(input);
    for (const each of [stranger, expression, stranger]) {
      const value = push(each, operands);
      for (const [i, x] of (input === 0 ? below : above).entries())
        want[i] = (want[i] as number) + each.evaluate(new Array(arity).fill(x), constants, 0);
      const isMask = each === expression && result !== "float";
      sum = push(total, [sum, isMask ? push(library.fromInteger, [value]) : value]);
    }
  }
  const alone = Object.values(await import("../src/expressions/of-integers.js"));
  expect(ofIntegers.sort()).toEqual(alone.map(({ name }) => name).sort());
  const program = { inputs: ["same", "same", "same"], steps, outputs: [steps.length - 1] } as const;
  const kernel = elementwiseKernel(program);
  const valueFor = ({ name, type }: KernelScalar): number =>
    name === "count" ? count : name === "one" || type !== "f32" ? 1 : 0.5;
  const scalars = Object.fromEntries(kernel.scalars.map((each) => [each.name, valueFor(each)]));
  const operands = {
    below: { values: below },
    above: { values: above },
    zero: { values: new Float32Array(count) },
    out: { values: count },
  };
  const launches: Launches<typeof operands> = (target, { below, above, zero, out }) =>
    target.launch({ kernel, bindings: [below, above, zero, out], scalars });
  const results = [
    runOnCpu(operands, launches),
    await runOnGpu(await requestTestDevice(), operands, launches),
  ];
  const within = { relative: 1e-5, absolute: 0 };
  expect(results.map(({ out }) => mismatches(out, want, within))).toEqual([[], []]);
});

/** A sum: what is wrong by more than rounding shows in it. */
const total: Expression = {
  name: "add",
  arity: 2,
  wgsl: ([sum, x]) => `${sum} + ${x}`,
  evaluate: (x) => (x[0] as number) + (x[1] as number),
};
