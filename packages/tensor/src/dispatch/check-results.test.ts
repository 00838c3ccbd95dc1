import { elementwise, formula } from "@halfstep/kernels";
import { expect, test } from "vitest";
import {
  ArgumentError,
  cpuRuntime,
  defineFunction,
  defineOp,
  type Operand,
  RecordingError,
  ShapeError,
  type Tensor,
} from "../index.js";
import type { OpDefinition } from "./op.js";

const identity = formula("identity", (x) => x);
const runtime = cpuRuntime();
const x = runtime.variable([1, 2], [2], { requiresGrad: true });

/** Applies an op that copies, with some of its members replaced. */
const applied = (changed: object): Tensor =>
  defineOp<null>({
    name: "mine",
    castPolicy: "none",
    shape: ([a]) => (a ? [a] : []),
    forward: ({ target, inputs, outputs: [y] }) =>
      target.launch(elementwise(identity, inputs, y as Operand)),
    backward: "none",
    ...changed,
  } as OpDefinition<null>).apply([x], null);

test.each<[string, unknown, new (message: string) => Error, string]>([
  ["nothing", undefined, ArgumentError, "mine: shape gave undefined: return a list"],
  ["no result", [], ArgumentError, "mine: shape gave []: return a list"],
  ["no list", { shape: [2], dtype: "float32" }, ArgumentError, "mine: shape gave an object"],
  ["a shape alone", [[2]], ArgumentError, "mine: shape gave [2] for result 0: return { shape,"],
  ["no dtype", [{ shape: [2] }], ArgumentError, "mine: shape gave an object { shape } for result"],
  ["a number as dtype", [{ shape: [2], dtype: 32 }], ArgumentError, "for result 0"],
  ["half an element", [{ shape: [1.5], dtype: "float32" }], ShapeError, "the sizes [1.5]"],
  ["a size below 0", [{ shape: [-2], dtype: "float32" }], ShapeError, "the sizes [-2]"],
])("an op whose shape gives %s is refused", (_, given, Refusal, message) => {
  expect(() => applied({ shape: () => given })).toThrow(Refusal);
  expect(() => applied({ shape: () => given })).toThrow(message);
});

test("an op is refused that leaves a result unwritten", () => {
  const spec = { shape: [2], dtype: "float32" };
  const both = { shape: () => [spec, spec] };
  expect(() => applied({ forward() {} })).toThrow(RecordingError);
  expect(() => applied({ forward() {} })).toThrow("mine: forward appended no launch that writes");
  expect(() => applied(both)).toThrow("no launch that writes result 1");
  expect(() => applied({ forward: async () => {} })).toThrow("mine: forward returned a promise");
  // An empty result needs no launch.
  const none = { shape: () => [{ shape: [0], dtype: "float32" }], forward() {} };
  expect(applied(none).shape).toEqual([0]);
});

test.each([
  [undefined, "undefined"],
  [3, "3"],
  [[x], "a list with tensors"],
])("a function whose forward gives %s is refused", (given, what) => {
  const mine = defineFunction({
    name: "mine",
    forward: (_: unknown, _x: Tensor) => given as never,
    backward: (_, gradient) => [gradient],
  });
  expect(() => mine(x)).toThrow(ArgumentError);
  expect(() => mine(x)).toThrow(`mine: forward gave ${what}: return one tensor`);
});
