import { type Expression, elementwise } from "@halfstep/kernels";
import { expect, test, vi } from "vitest";
import { cpuRuntime, defineOp, type Op } from "../index.js";

const opOf = (expression: Expression): Op<null> =>
  defineOp<null>({
    name: expression.name,
    castPolicy: "none",
    shape: ([x]) => (x ? [x] : []),
    forward({ target, inputs, outputs: [y] }) {
      if (y) target.launch(elementwise(expression, inputs, y));
    },
    backward: "none",
  });

const times = (factor: number): Expression => ({
  name: "mine",
  arity: 1,
  wgsl: ([x]) => `${x} * ${factor}.0`,
  evaluate: (x) => factor * (x[0] as number),
});

test("a kernel that is defined anew in every step is told of once, and computes what it says all the same", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const runtime = cpuRuntime();
  for (let step = 0; step < 100; step++) {
    const result = await runtime.step(() =>
      opOf(times(step)).apply([runtime.tensor([1, 2])], null),
    );
    expect(Array.from(await result.toArray())).toEqual([step, 2 * step]);
    result.dispose();
  }
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(
        /^kernel "mine same;0;0" was defined anew in 16 recordings.*: define kernels, .* outside of steps$/,
      ),
    ],
  ]);
  warn.mockRestore();
});

test("many kernels of one name that are each made once are nobody's mistake", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const runtime = cpuRuntime();
  const ops = Array.from({ length: 40 }, (_, factor) => opOf(times(factor + 1)));
  for (let step = 0; step < 3; step++)
    await runtime.step(() => {
      for (const op of ops) op.apply([runtime.tensor([1])], null).keep();
      return 0;
    });
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});
