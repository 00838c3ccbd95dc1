import { describe, expect, test } from "vitest";
import { parametersOf } from "../src/arguments/arguments.js";
import type { Kind, ParameterKinds } from "../src/arguments/kinds.js";
import { dtypeOrBool, flagInMemory } from "../src/arguments/own-kinds.js";
import { ArgumentError, backward, cpuRuntime, grad, kinds, Tensor } from "../src/index.js";
import * as further from "../src/ops/functional.js";
import * as first from "../src/ops/index.js";
import { BasicMethods } from "../src/tensor/basic-methods.js";
import { FurtherMethods } from "../src/tensor/further-methods.js";

// Calls as from JavaScript, without a type checker: every exported op and every method of tensors, with each argument missing, of
// the wrong kind, and with unknown options.

const ops = { ...first, ...further, backward };
const runtime = cpuRuntime();
const x = runtime.zeros([2, 2]);
const variable = runtime.variable([1], [1]);

type Call = (...given: readonly unknown[]) => unknown;

interface Callee {
  readonly name: string;
  readonly call: Call;
  readonly parameters: ParameterKinds;
}

const functions: readonly Callee[] = Object.entries(ops)
  .filter(([, op]) => typeof op === "function")
  .map(([name, op]) => ({
    name,
    call: op as unknown as Call,
    parameters: parametersOf(op) as ParameterKinds,
  }));

/** Methods whose name differs from their function's. */
const renamed: Readonly<Record<string, string>> = { neg: "scale", isFinite: "isFiniteNumber" };

const methods: readonly Callee[] = [BasicMethods, FurtherMethods]
  .flatMap(({ prototype }) => Object.getOwnPropertyNames(prototype))
  .filter((name) => name !== "constructor")
  .map((name) => {
    const op = (ops as unknown as Record<string, object>)[renamed[name] ?? name] as object;
    const { [name === "where" ? "a" : name === "neg" ? "c" : ""]: _, ...all } = parametersOf(
      op,
    ) as ParameterKinds;
    const entries = Object.entries(all);
    const rest = name === "where" ? entries : entries.slice(1);
    return {
      name,
      call: (...given) => (x as unknown as Record<string, Call>)[name]?.call(x, ...given),
      parameters: Object.fromEntries(rest),
    };
  });

const others: readonly Callee[] = [
  { name: "grad", call: grad as Call, parameters: parametersOf(grad) as ParameterKinds },
  {
    name: "to",
    call: (...given) => (x.to as Call).call(x, ...given),
    parameters: { dtype: dtypeOrBool },
  },
  {
    name: "assign",
    call: (...given) => (variable.assign as Call).call(variable, ...given),
    parameters: { value: kinds.tensor, options: kinds.optionals({ unless: flagInMemory }) },
  },
];

const samples: readonly unknown[] = [
  x,
  1,
  [1, 2],
  [x],
  true,
  "float32",
  "a",
  "none",
  "mean",
  [[1, 2]],
  {},
  runtime,
  () => undefined,
];

/** A value of a kind that a parameter accepts. The function uses it only after all arguments were checked. */
function sampleOf(kind: Kind): unknown {
  const { members } = kind;
  if (members)
    return Object.fromEntries(
      Object.entries(members)
        .filter(([, member]) => !member.isOptional)
        .map(([name, member]) => [name, sampleOf(member)]),
    );
  const sample = samples.find((value) => kind.accepts(value));
  return sample ?? { take: () => 0, offset: 0 };
}

const stranger = Symbol("stranger");
const callees = [...functions, ...methods, ...others];

test("every exported function of tensors declares its parameters", () => {
  expect(functions.filter(({ parameters }) => !parameters).map(({ name }) => name)).toEqual([]);
  expect(functions.length).toBeGreaterThan(130);
  expect(methods.length).toBeGreaterThan(75);
});

/** The error of a call, which must be one of this library's, in its style. */
function refusalOf(callee: Callee, given: readonly unknown[]): string {
  try {
    callee.call(...given);
  } catch (error) {
    const { message } = error as Error;
    if (!(error instanceof ArgumentError)) throw error;
    return message;
  }
  return "nothing was refused";
}

const withParameters = callees.filter(({ parameters }) => Object.keys(parameters).length > 0);

describe.each(withParameters)("$name()", (callee) => {
  const parameters = Object.entries(callee.parameters);
  const valid = parameters.map(([, kind]) => sampleOf(kind));

  test("refuses what its parameters do not take", () => {
    for (const [i, [name, kind]] of parameters.entries()) {
      const parameter = kind.isRest ? `${name} 0` : name;
      const wrong = refusalOf(callee, valid.with(i, stranger));
      if (!kind.accepts(stranger))
        expect(wrong).toMatch(/^\w+\(.*\): \S+( 0)? must be .+, not Symbol\(stranger\)/);
      if (kind.isOptional || kind.isRest) continue;
      const missing = refusalOf(callee, valid.slice(0, i));
      expect(missing).toMatch(/^\w+\(.*\): \w+ is missing; it must be /);
      expect(missing).toContain(`${parameter} is missing`);
    }
    for (const [i, [name, { members }]] of parameters.entries()) {
      if (!members) continue;
      const given = { ...(valid[i] as object), stranger: 1 };
      expect(refusalOf(callee, valid.with(i, given))).toContain(
        `: ${name} has no stranger; did you mean `,
      );
      const [first] = Object.entries(members).find(([, member]) => !member.accepts(stranger)) ?? [];
      if (!first) continue;
      const wrong = { ...(valid[i] as object), [first]: stranger };
      expect(refusalOf(callee, valid.with(i, wrong))).toContain(`: ${name}.${first} must be `);
    }
  });
});

test("messages say what was meant", () => {
  const wrong = x as unknown as Record<string, Call>;
  const loose = ops as unknown as Record<string, Call>;
  const cases: readonly [() => unknown, string][] = [
    [
      () => wrong["mean"]?.call(x, 1, { keepDim: true }),
      "mean(x, axes?, options?): options has no keepDim; did you mean keepDimensions? It takes { keepDimensions }",
    ],
    [
      () => wrong["matmul"]?.call(x, x, { transposeB: true }),
      "matmul(a, b, options?): options has no transposeB; did you mean transB? It takes { transA, transB, dtype }",
    ],
    [() => loose["matmul"]?.(x), "matmul(a, b, options?): b is missing; it must be a tensor"],
    [() => loose["relu"]?.([x], null), "relu(x): takes 1 argument, not 2"],
    [
      () => loose["relu"]?.([x]),
      "relu(x): x must be a tensor, not a list with tensors; runtime.tensor() makes tensors",
    ],
    [
      () => loose["softmax"]?.(x, "1"),
      'softmax(x, axis?, options?): axis must be an integer, not "1"',
    ],
    [
      () => wrong["to"]?.call(x, "float17"),
      'to(dtype): dtype must be a dtype (float32, float16, bfloat16, float8e4m3fn, float8e5m2, int32, uint32) or "bool", not "float17"',
    ],
    [
      () => loose["maxPool2d"]?.(x, { stride: 2 }),
      "maxPool2d(x, options): options.window is missing; it must be an integer or a pair of them",
    ],
  ];
  for (const [call, message] of cases) expect(call).toThrow(new ArgumentError(message));
});

test("the classes of errors are those of JavaScript", () => {
  expect(new ArgumentError("")).toBeInstanceOf(TypeError);
  expect(Tensor.prototype).toBeInstanceOf(BasicMethods);
});
