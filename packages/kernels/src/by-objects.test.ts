import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { type Expression, elementwiseKernel } from "./elementwise.js";
import { add } from "./expressions.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const own = (): Expression => ({
  name: "add",
  arity: 1,
  wgsl: ([x]) => `${x}`,
  evaluate: (x) => x[0] as number,
});

/** The kernel of an own expression behind one of the library's, and before it. */
const kernelsOf = (expression: Expression) => [
  elementwiseKernel({
    inputs: ["same", "same"],
    steps: [
      { expression: add, operands: [0, 1] },
      { expression, operands: [2] },
    ],
    outputs: [1],
  }),
  elementwiseKernel({
    inputs: ["same"],
    steps: [
      { expression, operands: [0] },
      { expression: add, operands: [0, 1] },
    ],
    outputs: [1],
  }),
];

test("kernels are found again by the expressions of their programs", () => {
  const expression = own();
  const [first, second] = kernelsOf(expression);
  expect(kernelsOf(expression)).toEqual([first, second]);
  expect(kernelsOf(expression)[0]).toBe(first);
  expect(kernelsOf(own())[0]).not.toBe(first);
});

test("kernels of an expression that nobody holds any more are gone", async () => {
  const gone = kernelsOf(own()).map((kernel) => new WeakRef(kernel));
  // Weak references keep their targets alive until the turn of the event loop ends.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(gone.map((kernel) => kernel.deref())).toEqual([undefined, undefined]);
});
