import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Launches, runOnCpu, runOnGpu } from "../../test/harness.js";
import { type Expression, elementwiseKernel } from "../elementwise.js";
import { formula } from "./formula.js";
import { StripEvaluator } from "./strips.js";
import { type Condition, constant, leaf, predicate, select, type Term, variable } from "./term.js";

const textOf = ({ arity, scalars = 0, functions = "", wgsl }: Expression): string =>
  functions + wgsl(["a", "b", "d"].slice(0, arity), ["s", "t"].slice(0, scalars), "");

const isSet = predicate({ wgsl: (x) => `is_set(${x})`, holds: (x) => x !== 0 });
const half = leaf({
  name: "half",
  functions: (name) => `fn ${name}(x: vec4f) -> vec4f { return 0.5 * x; }\n`,
  evaluate: (x) => x / 2,
});
const power = leaf({
  name: "power",
  functions: (name) => `fn ${name}(x: vec4f, c: f32) -> vec4f { return pow(x, vec4f(c)); }\n`,
  evaluate: (x, c) => x ** c,
  arity: 2,
  scalars: 1,
});

describe("a formula in WGSL", () => {
  it.each<[string, Expression]>([
    ["a - b - d", formula("f", (a, b, d) => a.sub(b).sub(d))],
    ["a - (b - d)", formula("f", (a, b, d) => a.sub(b.sub(d)))],
    ["(a + b) * d", formula("f", (a, b, d) => a.add(b).mul(d))],
    ["a * (b * d)", formula("f", (a, b, d) => a.mul(b.mul(d)))],
    ["a / (b / d)", formula("f", (a, b, d) => a.div(b.div(d)))],
    ["-(-a)", formula("f", (a) => a.neg().neg())],
    ["-(a * b)", formula("f", (a, b) => a.mul(b).neg())],
    ["a - -b", formula("f", (a, b) => a.sub(b.neg()))],
    ["-0.5 * a * a", formula("f", (a) => constant(-0.5).mul(a).mul(a))],
    ["a + 1e-7 + 3.0 + 1e+21 + -0.0", formula("f", (a) => a.add(1e-7).add(3).add(1e21).add(-0))],
    ["2.0 * a", formula("f", (a) => constant(2.1, 2).mul(a))],
    ["sqrt(abs(a + b))", formula("f", (a, b) => a.add(b).abs().sqrt())],
    ["max(a, vec4f(s))", formula("f", (a, s) => a.max(s), { scalars: 1 })],
    ["a * max(s, 2.0)", formula("f", (a, s) => a.mul(s.max(2)), { scalars: 1 })],
    [
      "select(vec4f(0.0), a, s > 1.0)",
      formula("f", (a, s) => select(s.gt(1), a, 0), { scalars: 1 }),
    ],
    [
      "select(vec4f(t), vec4f(s), a > vec4f(0.0))",
      formula("f", (a, s, t) => select(a.gt(0), s, t), { scalars: 2 }),
    ],
    [
      "select(b, a, ((a < b) & vec4<bool>(s <= 1.0)) | (!(a >= b)))",
      formula("f", (a, b, s) => select(a.lt(b).and(s.le(1)).or(a.ge(b).not()), a, b), {
        scalars: 1,
      }),
    ],
    [
      "select(vec4u(0u), vec4u(1u), (is_set(a)) & (is_set((a + b))))",
      formula("f", (a, b) => isSet(a).and(isSet(a.add(b)))),
    ],
  ])("is %s", (text, expression) => {
    expect(textOf(expression)).toBe(text);
  });

  it("computes once what is used twice, and names functions after itself", () => {
    const expression = formula(
      "my formula",
      (a, b, s) => {
        const sum = half(a.add(b));
        return sum.mul(power(sum, s)).add(half(b));
      },
      { scalars: 1 },
    );
    expect(textOf(expression)).toBe(`fn my_formula_half(x: vec4f) -> vec4f { return 0.5 * x; }
fn my_formula_power(x: vec4f, c: f32) -> vec4f { return pow(x, vec4f(c)); }

fn my_formula_value(x0: vec4f, x1: vec4f, c0: f32) -> vec4f {
  let t0 = my_formula_half(x0 + x1);
  return t0 * my_formula_power(t0, c0) + my_formula_half(x1);
}
my_formula_value(a, b, s)`);
  });

  it("keeps leaves of one name apart", () => {
    const other = leaf({
      name: "half",
      functions: (name) => `fn ${name}(x: vec4f) -> vec4f { return x; }\n`,
      evaluate: (x) => x,
    });
    expect(textOf(formula("f", (a) => half(a).add(other(a))))).toContain("f_half(a) + f_half_1(a)");
  });
});

describe("a formula", () => {
  it("knows whether it only adds and multiplies, what it gives, and its scalars", () => {
    const sum = formula("f", (a, s) => a.add(s.mul(a)).neg(), { scalars: 1 });
    expect(sum).toMatchObject({ arity: 1, scalars: 1, isArithmetic: true });
    const test = formula("f", (a) => a.gt(0));
    expect(test).toMatchObject({ arity: 1, result: "uint32" });
    expect([test.isArithmetic, formula("f", (a) => a).isArithmetic]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("refuses what has no meaning", () => {
    expect(() => formula("f", (a, _b) => a)).toThrow('formula "f" does not use parameter 1');
    expect(() => formula("f", (a) => a.add(Number.NaN))).toThrow("no constant for NaN");
    expect(() => formula("f", (a) => a.add(undefined as never))).toThrow("not of undefined");
    expect(() => formula("f", (a) => (half as (...x: Term[]) => Term)(a, a))).toThrow(
      "half takes 1 operands, not 2",
    );
    expect(() => formula("f", (a) => power(a, a))).toThrow("one number for a launch");
  });

  it("rounds what is kept before others use it, if asked to", () => {
    const x = variable("x", { isUniform: false });
    const third = x.div(3);
    const evaluator = new StripEvaluator([third, third.mul(3)], new Set([third]));
    evaluator.read("x", Float64Array.of(1));
    evaluator.begin({});
    evaluator.run(1);
    expect([evaluator.result(0)[0], evaluator.result(1)[0]]).toEqual([1 / 3, 1]);
    evaluator.run(1, true);
    const kept = Math.fround(1 / 3);
    expect([evaluator.result(0)[0], evaluator.result(1)[0]]).toEqual([kept, kept * 3]);
  });
});

/** One line of a random formula, in which operands count back from the latest of the values so far. */
interface Line {
  readonly kind: keyof typeof kinds;
  readonly operands: readonly [number, number, number];
}

// Small whole numbers and their halves, which every step of float32 holds. A root may differ in its last bit.
const bounded = (x: Term): Term => select(x.abs().lt(2048), x, constant(3));
const boundedNumber = (x: number): number => (Math.abs(x) < 2048 ? x : 3);

const kinds = {
  add: [(a, b) => bounded(a.add(b)), (a, b) => boundedNumber(a + b)],
  sub: [(a, b) => bounded(a.sub(b)), (a, b) => boundedNumber(a - b)],
  mul: [(a, b) => bounded(a.mul(b).round()), (a, b) => boundedNumber(roundToEven(a * b))],
  div: [(a) => a.div(2).floor(), (a) => Math.floor(a / 2)],
  neg: [(a) => a.neg(), (a) => -a],
  abs: [(a) => a.abs(), (a) => Math.abs(a)],
  ceil: [(a) => constant(0.5).mul(a).ceil(), (a) => Math.ceil(0.5 * a)],
  sqrt: [
    (a) => bounded(a.square()).sqrt().add(0.25).floor(),
    (a) => Math.floor(Math.sqrt(boundedNumber(a * a)) + 0.25),
  ],
  min: [(a, b) => a.min(b), (a, b) => Math.min(a, b)],
  max: [(a, b) => a.max(b), (a, b) => Math.max(a, b)],
  above: [(a, b, c) => select(a.gt(b), b, c), (a, b, c) => (a > b ? b : c)],
  within: [
    (a, b, c) => select(a.ge(b).and(a.le(c)).or(a.eq(c).not()), b.sub(1), a),
    (a, b, c) => ((a >= b && a <= c) || a !== c ? b - 1 : a),
  ],
  masked: [
    (a, b, c) => select(isOdd(a).and(b.lt(c).not()), c, b),
    (a, b, c) => (a % 2 !== 0 && !(b < c) ? c : b),
  ],
} satisfies Record<string, [(...x: Three<Term>) => Term, (...x: Three<number>) => number]>;

type Three<T> = [a: T, b: T, c: T];

const isOdd = (x: Term): Condition => x.sub(x.div(2).floor().mul(2)).eq(0).not();

const roundToEven = (x: number): number =>
  Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x);

/** The values of a random formula's lines, from those that it starts with. */
function valuesOf<T>(lines: readonly Line[], start: readonly T[], which: 0 | 1): T[] {
  const values = [...start];
  for (const { kind, operands } of lines) {
    const of = kinds[kind][which] as unknown as (...x: Three<T>) => T;
    const [a, b, c] = operands.map((back) => values.at(-1 - (back % values.length)) as T);
    values.push(of(a as T, b as T, c as T));
  }
  return values;
}

const place = fc.nat({ max: 11 });
const linesOfOne = fc.array(
  fc.record({
    kind: fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[])),
    operands: fc.tuple(place, place, place),
  }),
  { minLength: 8, maxLength: 24 },
);

const count = 300;
const first = Float32Array.from({ length: count }, (_, i) => (i % 17) - 8);
const second = Float32Array.from({ length: count }, (_, i) => (Math.floor(i / 17) % 15) - 7);
const scalar = 1.5;

const expressionOf = (lines: readonly Line[]): Expression =>
  formula(
    "random",
    (x, y, c) =>
      // All values, so that none is left out, and each may be shared.
      valuesOf(lines, [x, y, c], 0).reduce((sum, value) => bounded(sum.sub(value))),
    { scalars: 1 },
  );

const expectedOf = (lines: readonly Line[]): Float32Array =>
  first.map((x, i) =>
    valuesOf(lines, [x, second[i] as number, scalar], 1).reduce((sum, value) =>
      boundedNumber(sum - value),
    ),
  );

const operandsOf = (outputs: number) => ({
  x: { values: first },
  y: { values: second },
  ...Object.fromEntries(Array.from({ length: outputs }, (_, k) => [`out${k}`, { values: count }])),
});

const launchesOf =
  (programs: readonly (readonly Line[])[]): Launches<ReturnType<typeof operandsOf>> =>
  (target, bindings) =>
    target.launch({
      kernel: elementwiseKernel({
        inputs: ["same", "same"],
        steps: programs.map((lines) => ({ expression: expressionOf(lines), operands: [0, 1] })),
        outputs: programs.map((_, k) => k),
      }),
      bindings: Object.values(bindings),
      scalars: {
        ...{ count, one: 1 },
        ...Object.fromEntries(programs.map((_, k) => [`c${k}_0`, scalar])),
      },
    });

const wrongIn = (programs: readonly (readonly Line[])[], results: object): number[] =>
  programs.flatMap((lines, k) => {
    const got = Array.from(
      (results as Record<string, Float32Array>)[`out${k}`] ?? [],
      (v) => v + 0,
    );
    return got.length === count && expectedOf(lines).every((v, i) => v + 0 === got[i]) ? [] : [k];
  });

describe("random formulas", () => {
  it("give what they say on the CPU", () => {
    fc.assert(
      fc.property(linesOfOne, (lines) => {
        const results = runOnCpu(operandsOf(1), launchesOf([lines]));
        expect(wrongIn([lines], results)).toEqual([]);
      }),
    );
  });

  it("give the same on the GPU", async () => {
    const [tier] = await testTiers();
    const device = await requestTestDevice(tier ? { tier } : {});
    const several = fc.array(linesOfOne, { minLength: 6, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(several, async (programs) => {
        const results = await runOnGpu(device, operandsOf(6), launchesOf(programs));
        expect(wrongIn(programs, results)).toEqual([]);
      }),
      { numRuns: 8, endOnFailure: true },
    );
  });
});
