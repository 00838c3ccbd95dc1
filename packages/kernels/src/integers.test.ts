import type { DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import type { IntegerDType } from "@halfstep/formats/dtypes";
import { describe, expect, it } from "vitest";
import { deviceMismatches, type Launches, runOnCpu } from "../test/harness.js";
import type { Domain } from "./domain.js";
import { type Expression, elementwise, elementwiseKernel } from "./elementwise.js";
import * as expressions from "./expressions.js";
import { formOf } from "./forms.js";

/** The largest exact integers of float32, and the ends of int32 and uint32. */
const edges: Readonly<Record<IntegerDType, readonly number[]>> = {
  int32: [0, 1, -1, 2 ** 24 - 1, 2 ** 24, 2 ** 24 + 1, -(2 ** 24) - 1, 2 ** 31 - 1, -(2 ** 31)],
  uint32: [0, 1, 5, 2 ** 24 - 1, 2 ** 24, 2 ** 24 + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
};
const domains = ["int32", "uint32"] as const;
const pairs = domains.flatMap((a) => domains.map((b) => [a, b] as const));
const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const numbers = [
  0,
  -0,
  0.5,
  -0.5,
  1,
  -1,
  2 ** 24 + 1,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 32 - 1,
].concat([2 ** 32, -(2 ** 31) - 0.5, 2 ** 24 + 0.5, 1e20, -1e20, inf, -inf, nan]);

const dtypeOf = (domain: Domain): DType => (domain === "float" ? "float32" : domain);

interface Step {
  readonly expression: Expression;
  /** Of the inputs. */
  readonly operands: readonly number[];
  readonly constants?: readonly number[];
  /** The expected result, computed in JavaScript. */
  expected(x: readonly number[]): number;
}

interface Case {
  readonly inputs: readonly { readonly domain: Domain; readonly values: readonly number[] }[];
  /** At most six: the inputs and one output each are bound together. */
  readonly steps: readonly Step[];
}

/** Every pair of two lists. */
const crossed = (a: readonly number[], b: readonly number[]) => ({
  first: a.flatMap((x) => b.map(() => x)),
  second: a.flatMap(() => b),
});

const { gt, ge, lt, le, eq, ne, gtScalar, geScalar, ltScalar, leScalar, eqScalar, neScalar } =
  expressions;
const compared: readonly [Expression, Expression, (a: number, b: number) => boolean][] = [
  [gt, gtScalar, (a, b) => a > b],
  [ge, geScalar, (a, b) => a >= b],
  [lt, ltScalar, (a, b) => a < b],
  [le, leScalar, (a, b) => a <= b],
  [eq, eqScalar, (a, b) => a === b],
  [ne, neScalar, (a, b) => a !== b],
];

const saturated = (domain: IntegerDType, x: number): number => {
  const [low, high] = domain === "int32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  if (Number.isNaN(x)) return 0;
  return x <= low ? low : x >= high ? high : Math.trunc(x) + 0;
};

const casts: readonly Step[] = domains.map((domain) => ({
  expression: domain === "int32" ? expressions.toInt32 : expressions.toUint32,
  operands: [0],
  expected: ([x]) => saturated(domain, x as number),
}));

const ofPairs = pairs.map(([a, b]): Case => {
  const { first, second } = crossed(edges[a], edges[b]);
  return {
    inputs: [
      { domain: a, values: first },
      { domain: b, values: second },
    ],
    steps: compared.map(([expression, , holds]) => ({
      expression,
      operands: [0, 1],
      expected: ([x, y]) => Number(holds(x as number, y as number)),
    })),
  };
});

const withNumbers = domains.flatMap((domain) =>
  numbers.map(
    (c): Case => ({
      inputs: [{ domain, values: edges[domain] }],
      steps: compared.map(([, expression, holds]) => ({
        expression,
        operands: [0],
        constants: [c],
        expected: ([x]) => Number(holds(x as number, c)),
      })),
    }),
  ),
);

const single = domains.map(
  (domain): Case => ({
    inputs: [{ domain, values: edges[domain] }],
    steps: [
      ...casts,
      { expression: expressions.identity, operands: [0], expected: ([x]) => x as number },
      {
        expression: expressions.fromInteger,
        operands: [0],
        expected: ([x]) => Math.fround(x as number),
      },
      { expression: expressions.logicalNot, operands: [0], expected: ([x]) => Number(x === 0) },
      { expression: expressions.isFiniteNumber, operands: [0], expected: () => 1 },
    ],
  }),
);

const masked = pairs.map(([a, b]): Case => {
  const { first, second } = crossed(edges[a], edges[b]);
  return {
    inputs: [
      { domain: a, values: first },
      { domain: b, values: second },
    ],
    steps: [
      {
        expression: expressions.where,
        operands: [0, 1, 1],
        expected: ([, y]) => y as number,
      },
      {
        expression: expressions.keepWhere,
        operands: [1, 0],
        expected: ([m, y]) => (m === 0 ? 0 : (y as number)),
      },
      {
        expression: expressions.maskedFill,
        operands: [1, 0],
        constants: [-1.5],
        expected: ([m, y]) => (m === 0 ? (y as number) : saturated(b, -1.5)),
      },
      {
        expression: expressions.logicalXor,
        operands: [0, 1],
        expected: ([x, y]) => Number((x === 0) !== (y === 0)),
      },
    ],
  };
});

const floats: Case = {
  inputs: [
    { domain: "float", values: [...numbers, 2 ** 31 - 128, 2 ** 32 - 256].map(Math.fround) },
  ],
  steps: casts,
};

const { first, second } = crossed([0, 1, 2, 3, 2 ** 31, 2 ** 32 - 1], [0, 4, 5, 2 ** 32 - 1]);
const places: Case = {
  inputs: [
    { domain: "uint32", values: first },
    { domain: "uint32", values: second },
  ],
  steps: [
    {
      expression: expressions.placeIn,
      operands: [0, 1],
      constants: [3, 5],
      expected: ([p, i]) =>
        (p as number) < 3 && (i as number) < 5 ? (p as number) * 5 + (i as number) : 2 ** 32 - 1,
    },
  ],
};

/** Modulo 2^32, of a number of any size. */
const wrapped = (domain: IntegerDType, x: bigint): number =>
  Number(domain === "int32" ? BigInt.asIntN(32, x) : BigInt.asUintN(32, x));

const floorOf = (a: bigint, b: bigint): bigint => {
  if (b === 0n) return 0n;
  const towardsZero = a / b;
  return towardsZero * b !== a && a < 0n !== b < 0n ? towardsZero - 1n : towardsZero;
};

/** A count modulo 2^32, of which 32 is as good as every larger one. */
const countOf = (count: bigint): bigint => {
  const unsigned = BigInt.asUintN(32, count);
  return unsigned < 32n ? unsigned : 32n;
};

type OfIntegers = (a: bigint, b: bigint) => bigint;

const arithmetic: readonly [Expression, Expression, OfIntegers][] = [
  [expressions.floorDivide, expressions.floorDivideScalar, floorOf],
  [expressions.remainder, expressions.remainderScalar, (a, b) => a - b * floorOf(a, b)],
  [expressions.bitwiseAnd, expressions.bitwiseAndScalar, (a, b) => a & b],
  [expressions.bitwiseOr, expressions.bitwiseOrScalar, (a, b) => a | b],
  [expressions.bitwiseXor, expressions.bitwiseXorScalar, (a, b) => a ^ b],
];
const shifts: typeof arithmetic = [
  [
    expressions.bitwiseLeftShift,
    expressions.bitwiseLeftShiftScalar,
    (a, count) => a << countOf(count),
  ],
  [
    expressions.bitwiseRightShift,
    expressions.bitwiseRightShiftScalar,
    (a, count) => a >> countOf(count),
  ],
];

const stepsOf = (
  functions: typeof arithmetic,
  result: IntegerDType,
  constant: number | undefined,
): readonly Step[] =>
  functions.map(([ofTwo, withScalar, exact]) => ({
    expression: constant === undefined ? ofTwo : withScalar,
    operands: constant === undefined ? [0, 1] : [0],
    ...(constant !== undefined && { constants: [constant] }),
    expected: ([x, y]) =>
      wrapped(result, exact(BigInt(x as number), BigInt(constant ?? (y as number)))),
  }));

const divided = pairs.flatMap(([a, b]): Case[] => {
  const counts = [0, 1, 5, 31, 32, 33, b === "int32" ? -1 : 2 ** 32 - 1];
  const [numbers, shifted] = [crossed(edges[a], edges[b]), crossed(edges[a], counts)];
  const both = a === "int32" || b === "int32" ? "int32" : "uint32";
  return [
    {
      inputs: [
        { domain: a, values: numbers.first },
        { domain: b, values: numbers.second },
      ],
      steps: stepsOf(arithmetic, both, undefined),
    },
    {
      inputs: [
        { domain: a, values: shifted.first },
        { domain: b, values: shifted.second },
      ],
      steps: stepsOf(shifts, a, undefined),
    },
  ];
});

// The number is a runtime scalar: all cases of a domain are one program.
const dividedByNumbers = domains.flatMap((domain) => [
  ...edges[domain].map(
    (c): Case => ({
      inputs: [{ domain, values: edges[domain] }],
      steps: stepsOf(arithmetic, domain, c),
    }),
  ),
  ...[0, 1, 31, 32].map(
    (c): Case => ({
      inputs: [{ domain, values: edges[domain] }],
      steps: [
        ...stepsOf(shifts, domain, c),
        {
          expression: expressions.bitwiseNot,
          operands: [0],
          expected: ([x]) => wrapped(domain, ~BigInt(x as number)),
        },
      ],
    }),
  ),
]);

const cases: readonly Case[] = [
  ...[...ofPairs, ...withNumbers, ...single, ...masked, floats, places],
  ...[...divided, ...dividedByNumbers],
];

const names = ["a", "b", "y0", "y1", "y2", "y3", "y4", "y5"] as const;

/** The operands of a case, and its launch: one program with an output for each step. */
function launchOf({ inputs, steps }: Case) {
  const count = inputs[0]?.values.length as number;
  const forms = steps.map(({ expression, operands }) =>
    formOf(
      expression,
      operands.map((o) => inputs[o]?.domain as Domain),
    ),
  );
  const operands: Record<string, { values: readonly number[] | number; dtype: DType }> = {};
  for (const [i, { values, domain }] of inputs.entries())
    operands[names[i] as string] = { values, dtype: dtypeOf(domain) };
  for (const [k, { result }] of forms.entries())
    operands[`y${k}`] = { values: count, dtype: dtypeOf(result) };
  const kernel = elementwiseKernel({
    inputs: inputs.map(() => "same"),
    domains: inputs.map(({ domain }) => domain),
    steps,
    outputs: steps.map((_, k) => k),
  });
  const scalars: Record<string, number> = { count, one: 1 };
  for (const [k, { constants = [] }] of steps.entries())
    for (const [j, value] of (forms[k]?.scalarsOf?.(constants) ?? constants).entries())
      scalars[`c${k}_${j}`] = value;
  const launches: Launches<typeof operands> = (target, bindings) =>
    target.launch({
      kernel,
      bindings: Object.keys(operands).map(
        (name) => bindings[name] as NonNullable<(typeof bindings)[string]>,
      ),
      scalars,
    });
  return { operands, launches };
}

const nameOf = ({ inputs, steps }: Case): string =>
  `${steps.map(({ expression, constants = "" }) => `${expression.name}(${constants})`)} of ${inputs.map(({ domain }) => domain)}`;

describe("expressions of integers", () => {
  it("are exact on the CPU", () => {
    for (const one of cases) {
      const { operands, launches } = launchOf(one);
      const results = runOnCpu(operands, launches);
      for (const [k, { expected, operands: of }] of one.steps.entries()) {
        const wanted = one.inputs[0]?.values.map((_, e) =>
          expected(one.inputs.map(({ values }) => values[e] as number)),
        );
        expect([nameOf(one), of, [...(results[`y${k}`] ?? [])]]).toEqual([nameOf(one), of, wanted]);
      }
    }
  });

  it("are the same on the GPU", async () => {
    const [tier] = await testTiers();
    const device = await requestTestDevice(tier ? { tier } : {});
    const exact = { relative: 0, absolute: 0 };
    const outputs = Object.fromEntries(names.slice(2).map((name) => [name, exact]));
    const found: string[] = [];
    for (const one of cases) {
      const { operands, launches } = launchOf(one);
      const texts = await deviceMismatches(device, operands, launches, outputs);
      found.push(...texts.map((text) => `${nameOf(one)} ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("refuse integers where there is no exact form, and outputs of another domain", () => {
    const binding = (dtype: DType) => ({ buffer: 0, offset: 0, length: 1, dtype, shape: [1] });
    expect(() => elementwise(expressions.exp, [binding("int32")], binding("float32"))).toThrow(
      "exp does not compute with operands of (int32): cast integers to float32 first",
    );
    expect(() =>
      elementwise(expressions.eq, [binding("int32"), binding("float32")], binding("uint32")),
    ).toThrow("eq does not compute with operands of (int32, float)");
    expect(() => elementwise(expressions.identity, [binding("int32")], binding("float32"))).toThrow(
      "identity gives int32 of these operands, and its output is float32",
    );
  });
});
