import type { DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { deviceMismatches, testValues } from "../test/harness.js";
import { type Expression, elementwise } from "./elementwise.js";
import * as ofIntegers from "./expressions/of-integers.js";
import * as expressions from "./expressions.js";

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

/** Hard values for formulas: zeros, tiny and huge values, the limits of exp, NaN and infinities, then plain numbers. */
const hostile: readonly number[] = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  2,
  -2,
  3,
  1e-10,
  -1e-10,
  1e-30,
  0.624,
  0.626,
  -0.625,
  4.97,
  10.1,
  -20,
  88.5,
  -88.5,
  89.5,
  -89.5,
  104,
  -104,
  1e6,
  -1e6,
  1e20,
  -1e20,
  3.4e38,
  -3.4e38,
  inf,
  -inf,
  nan,
];
const values: readonly number[] = [...hostile, ...testValues(200).map((v) => v * 6)].map(
  Math.fround,
);
const pairsOf = (which: 0 | 1): number[] =>
  hostile.flatMap((a) => hostile.map((b) => Math.fround(which === 0 ? a : b)));

const rounded = { relative: 2 ** -22, absolute: 2 ** -126 };
const approximate = { relative: 2 ** -17, absolute: 2 ** -120 };

interface Case {
  readonly expression: Expression;
  readonly tolerance: { readonly relative: number; readonly absolute: number };
  readonly constants?: readonly number[];
}

const exactOnes = [
  "floor",
  "ceil",
  "round",
  "clamp",
  "clampBackward",
  "hardtanhBackward",
  "isNan",
  "isInf",
]
  .concat(["isFiniteNumber", "logicalAnd", "logicalOr", "logicalXor", "logicalNot"])
  .concat(["gt", "ge", "lt", "le", "eq", "ne"].map((name) => `${name}Scalar`))
  .concat(["maskedFill", "keepWhere", "fromInteger", "toInt32", "toUint32"])
  .concat(["identity", "neg", "abs", "sign", "relu", "reluBackward", "maximum", "minimum"])
  .concat(["maximumBackward", "minimumBackward", "where", "gt", "ge", "lt", "le", "eq", "ne"])
  .concat(["add", "sub", "mul", "square"]);

const constantsOf: Readonly<Record<string, readonly number[]>> = {
  softplus: [1, 20],
  softplusBackward: [2, 20],
  clamp: [-0.5, 3],
  clampBackward: [-0.5, 3],
  hardtanhBackward: [-0.5, 3],
  addcmul: [0.5],
  addcdiv: [0.5],
  maskedFill: [7],
  elu: [1.5],
  eluBackward: [1.5],
  leakyRelu: [0.1],
  leakyReluBackward: [0.1],
  ...Object.fromEntries(
    ["gt", "ge", "lt", "le", "eq", "ne"].map((name) => [`${name}Scalar`, [0.5]]),
  ),
  scale: [0.3],
  addScalar: [-0.7],
  pow: [2.5],
};

/** Expressions of integers alone are tested elsewhere. */
const ofFloats = Object.values(expressions).filter(
  (expression) => !Object.values<Expression>(ofIntegers).includes(expression),
);

const cases: readonly Case[] = [
  ...ofFloats.map(
    (expression): Case => ({
      expression,
      constants: constantsOf[expression.name] ?? [],
      tolerance: exactOnes.includes(expression.name)
        ? { relative: 0, absolute: 2 ** -126 }
        : ["div", "reciprocal", "sqrt", "rsqrt", "scale", "addScalar"].includes(expression.name)
          ? rounded
          : approximate,
    }),
  ),
  ...[0, 1, 2, 3, -1, -2, 0.5, -2.5, 101, 1 / 3, -0.2, Number.NaN, Infinity, -Infinity].map(
    (c): Case => ({
      expression: expressions.pow,
      tolerance: c > 64 ? { relative: 2 ** -15, absolute: 2 ** -120 } : approximate,
      constants: [c],
    }),
  ),
  {
    expression: expressions.clamp,
    tolerance: { relative: 0, absolute: 2 ** -126 },
    constants: [3, -0.5],
  },
];

function operandsOf({ name, arity, result = "float" }: Expression) {
  const columns =
    arity === 1
      ? [values]
      : arity === 2
        ? [pairsOf(0), pairsOf(1)]
        : [pairsOf(0), pairsOf(1), pairsOf(1).reverse()];
  // A slope that float32 cannot hold must not become visible through a huge gradient.
  if (name.endsWith("Backward"))
    columns[0] = (columns[0] as number[]).map((g) => (Math.abs(g) <= 1 ? g : 1));
  const operand = (i: number) => ({ values: columns[i % columns.length] as number[] });
  const dtype: DType = result === "float" ? "float32" : result;
  const y = { values: operand(0).values.length, dtype };
  return { a: operand(0), b: operand(1), c: operand(2), y };
}

describe("expressions on the CPU", () => {
  const evaluate = ({ evaluate }: Expression, x: number[], c: number[] = []) => evaluate(x, c, 0);
  const { erf, gelu, geluTanh, sigmoid, silu, where, relu, reluBackward, sign, ne, eq, maximum } =
    expressions;
  const { clamp, sin, atan2, pow, powTensor, log1p, expm1, erfinv, round } = expressions;

  it("give tabulated values", () => {
    const table = [
      // erf from Abramowitz and Stegun, table 7.1; the others follow from their definitions.
      [erf, 0.5, 0.5204998778],
      [erf, 1e-12, (2 / Math.sqrt(Math.PI)) * 1e-12],
      [erf, -2, -0.995322265],
      [erf, 3, 0.9999779095],
      [gelu, 1, 0.5 * (1 + 0.6826894921)],
      [gelu, -5, -5 * 2.866515719e-7],
      [geluTanh, 1, 0.8411919906],
      [sigmoid, -700, Math.exp(-700)],
      [sigmoid, 2, 1 / (1 + Math.exp(-2))],
      [silu, -3, -3 / (1 + Math.exp(3))],
    ] as const;
    const wrong = table.filter(([expression, x, y]) => {
      const got = evaluate(expression, [x]);
      return Math.abs(got / y - 1) > 1e-8;
    });
    expect(wrong).toEqual([]);
  });

  it("give what Python's math gives", () => {
    // math.sin, atan2, pow, expm1, log1p of CPython 3, erfinv of torch 2.13 in float64.
    const table = [
      [sin, [1e22], -0.8522008497671888],
      [atan2, [-0, -1], -Math.PI],
      [powTensor, [-2, 3], -8],
      [powTensor, [1, nan], 1],
      [powTensor, [-1, inf], 1],
      [log1p, [1e-12], 9.999999999995e-13],
      [expm1, [1e-12], 1.0000000000005e-12],
      [erfinv, [0.5], 0.4769362762044699],
      [erfinv, [-0.9999999], -3.7665625816384707],
      [round, [2.5], 2],
    ] as const;
    const wrong = table.filter(([expression, x, y]) => {
      const got = evaluate(expression, [...x]);
      return !Object.is(got, y) && !(Math.abs(got / y - 1) < 1e-13);
    });
    expect(wrong).toEqual([]);
  });

  it("treat NaN as torch does", () => {
    expect(evaluate(relu, [nan])).toBeNaN();
    expect(evaluate(sign, [nan])).toBeNaN();
    expect([2, 0, inf, nan, -1].map((x) => evaluate(pow, [x], [nan]))).toEqual(Array(5).fill(nan));
    expect([nan, inf, -inf].map((c) => evaluate(pow, [1], [c]))).toEqual([1, 1, 1]);
    expect([inf, -inf].map((c) => evaluate(pow, [-1], [c]))).toEqual([1, 1]);
    expect(evaluate(pow, [nan], [0])).toBe(1);
    expect(evaluate(maximum, [1, nan])).toBeNaN();
    expect(evaluate(reluBackward, [3, nan])).toBe(3);
    expect([evaluate(eq, [nan, nan]), evaluate(ne, [nan, nan])]).toEqual([0, 1]);
    expect(evaluate(where, [nan, 1, 2])).toBe(1);
    expect(evaluate(where, [-0, 1, nan])).toBeNaN();
  });

  it("clamp to the upper end where the ends are exchanged, as torch does", () => {
    expect([-2, 0, 2].map((x) => evaluate(clamp, [x], [1, -1]))).toEqual([-1, -1, -1]);
  });

  it("are distinct and name the functions that they declare after themselves", () => {
    const all = Object.values(expressions);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    const foreign = all.flatMap(({ name, functions = "" }) =>
      [...functions.matchAll(/fn (\w+)/g)].flatMap(([, f]) =>
        f?.startsWith(`${name}_`) ? [] : [`${name} declares ${f}`],
      ),
    );
    expect(foreign).toEqual([]);
  });
});

const [tier] = await testTiers();

describe("expressions on the GPU", () => {
  // In float32 their text is the same on every tier.
  it("equal their JavaScript at hostile values", async () => {
    const device = await requestTestDevice(tier ? { tier } : {});
    const found: string[] = [];
    for (const { expression, tolerance, constants = [] } of cases) {
      const operands = operandsOf(expression);
      const texts = await deviceMismatches(
        device,
        operands,
        (target, { a, b, c, y }) => {
          const shape = [y.length];
          const inputs = [a, b, c].slice(0, expression.arity).map((x) => ({ ...x, shape }));
          target.launch(elementwise(expression, inputs, { ...y, shape }, constants));
        },
        { y: tolerance },
      );
      found.push(...texts.map((text) => `${expression.name}(${constants}) ${text}`));
    }
    expect(found).toEqual([]);
  });
});
