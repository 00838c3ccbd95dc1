import type { Kernel } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { defineKernel, type Expression, elementwise, linearMain } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  defineOp,
  gpuRuntime,
  type Op,
  type RuntimeOptions,
  type Tensor,
} from "../src/index.js";

// A kernel or an expression is the object, whatever its name says, on every runner and with every choice of passes.

const runners = {
  CPU: async (options: RuntimeOptions) => cpuRuntime(options),
  GPU: async (options: RuntimeOptions) => gpuRuntime(await requestTestDevice(), options),
};

const cases = (["CPU", "GPU"] as const).flatMap((runner) => [
  { runner, passing: "without passes", options: { passes: [] } as RuntimeOptions },
  { runner, passing: "with all passes", options: {} as RuntimeOptions },
]);

/** A kernel called "mine" that multiplies by a factor that its body knows. */
const multiplies = (factor: number): Kernel =>
  defineKernel({
    name: "mine",
    epilogue: "store",
    bindings: [
      { name: "x", access: "read" },
      { name: "y", access: "write" },
    ],
    scalars: [{ name: "count", type: "u32" }],
    body: () => `${linearMain()}
  if (index * 4u >= s.count) { return; }
  store_y(index, load_x(index) * ${factor}.0);
}
`,
    workgroups: ({ count }) => [Math.ceil((count as number) / 256), 1, 1],
    reference([x, y]) {
      y?.set(Array.from(x as Float32Array, (value) => value * factor));
    },
  });

const opOf = (kernel: Kernel): Op<null> =>
  defineOp<null>({
    name: "mine",
    castPolicy: "none",
    shape: ([x]) => (x ? [x] : []),
    forward({ target, inputs: [x], outputs: [y] }) {
      if (x && y) target.launch({ kernel, bindings: [x, y], scalars: { count: x.length } });
    },
    backward: "none",
  });

const pointwise = (expression: Expression): Op<null> =>
  defineOp<null>({
    name: expression.name,
    castPolicy: "none",
    shape: ([x]) => (x ? [x] : []),
    forward({ target, inputs, outputs: [y] }) {
      if (y) target.launch(elementwise(expression, inputs, y));
    },
    backward: "none",
  });

/** factor · x, under any name, by a function that is called as somebody else's may be. */
const times = (factor: number, name: string, helper?: string): Expression => ({
  name,
  arity: 1,
  wgsl: ([x]) => (helper ? `${helper}(${x})` : `${x} * ${factor}.0`),
  evaluate: (x) => factor * (x[0] as number),
  ...(helper && {
    functions: `fn ${helper}(x: vec4f) -> vec4f { return ${helper}_factor * x; }\nconst ${helper}_factor = ${factor}.0;\n`,
  }),
});

const numbers = async (x: Tensor): Promise<readonly number[]> => Array.from(await x.toArray());

describe.each(cases)("$runner, $passing", ({ runner, options }) => {
  test("two kernels of one name compute what each of them says", async () => {
    const runtime = await runners[runner](options);
    const [double, triple] = [opOf(multiplies(2)), opOf(multiplies(3))];
    const both = await runtime.step(() => {
      const x = runtime.tensor([1, 2, 3]);
      return [
        double.apply([x], null),
        triple.apply([x], null),
        double.apply([x], null).relu(),
        triple.apply([x], null).relu(),
      ];
    });
    expect(await Promise.all(both.map(numbers))).toEqual([
      [2, 4, 6],
      [3, 6, 9],
      [2, 4, 6],
      [3, 6, 9],
    ]);
    for (const [op, expected] of [
      [double, [2, 4]],
      [triple, [3, 6]],
      [double, [2, 4]],
    ] as const)
      expect(
        await numbers(await runtime.step(() => op.apply([runtime.tensor([1, 2])], null))),
      ).toEqual(expected);
  });

  test("expressions with a library's name are not taken for it, nor it for them", async () => {
    const runtime = await runners[runner](options);
    const [square, identity, add] = ["square", "identity", "add"].map((name) =>
      pointwise(times(7, name)),
    ) as [Op<null>, Op<null>, Op<null>];
    const steps = [
      (x: Tensor) => square.apply([x], null),
      (x: Tensor) => x.square(),
      (x: Tensor) => identity.apply([x], null),
      (x: Tensor) => identity.apply([x], null).to("float16"),
      (x: Tensor) => identity.apply([x.square()], null).add(x),
      (x: Tensor) => add.apply([x.add(x)], null).square(),
    ];
    const results = [];
    for (const step of steps)
      results.push(await numbers(await runtime.step(() => step(runtime.tensor([1, 2, 3])))));
    expect(results).toEqual([
      [7, 14, 21],
      [1, 4, 9],
      [7, 14, 21],
      [7, 14, 21],
      [8, 30, 66],
      [196, 784, 1764],
    ]);
  });

  test("functions of one name that expressions call are each the expression's own", async () => {
    const runtime = await runners[runner](options);
    const ops = [2, 3, 5].map((factor) => pointwise(times(factor, "scaled", "scaled_by")));
    const result = await runtime.step(() =>
      ops.reduce(
        (x, op) => op.apply([x], null),
        opOf(multiplies(1)).apply([runtime.tensor([1, 2, 3])], null),
      ),
    );
    expect(await numbers(result)).toEqual([30, 60, 90]);
  });
});
