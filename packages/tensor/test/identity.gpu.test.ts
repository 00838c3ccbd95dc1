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

// Kernels and expressions are identified by their objects, not by their names, on every runner and with every choice of passes.

const runners = {
  CPU: async (options: RuntimeOptions) => cpuRuntime(options),
  GPU: async (options: RuntimeOptions) => gpuRuntime(await requestTestDevice(), options),
};

const cases = (["CPU", "GPU"] as const).flatMap((runner) => [
  { runner, passing: "without passes", options: { passes: [] } as RuntimeOptions },
  { runner, passing: "with all passes", options: {} as RuntimeOptions },
]);

/** A kernel called "mine" that multiplies by a factor in its body. */
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

/**
 * factor · x + shift, as a kernel whose parameters and functions have the names of those of elementwise programs. One such program is
 * woven into its store.
 */
const affine: Kernel = defineKernel({
  name: "affine",
  epilogue: "store",
  bindings: [
    { name: "x0", access: "read" },
    { name: "y0", access: "write" },
  ],
  scalars: [
    { name: "count", type: "u32" },
    { name: "one", type: "f32", runtime: true },
    { name: "c0_0", type: "f32", runtime: true },
    { name: "x1_size0", type: "u32" },
    { name: "elements", type: "u32" },
  ],
  body: () => `fn finish(v: vec4f) -> vec4f { return v * f32(s.one) + f32(s.x1_size0); }
fn finished(i: u32, v: vec4f) -> vec4f { return finish(v) + s.c0_0 + f32(s.elements); }
fn observe_y0(i: u32) -> u32 { return i; }
${linearMain()}
  if (index * 4u >= s.count) { return; }
  store_y0(index, finished(index, load_x0(observe_y0(index))));
}
`,
  workgroups: ({ count }) => [Math.ceil((count as number) / 256), 1, 1],
  reference([x, y], { one, c0_0, x1_size0, elements }) {
    const shift = [c0_0, x1_size0, elements].reduce<number>((sum, n) => sum + (n as number), 0);
    y?.set(Array.from(x as Float32Array, (value) => value * (one as number) + shift));
  },
});

/** 5 x + 3 + 20 + 100. */
const affineOp = defineOp<number>({
  name: "affine",
  castPolicy: "none",
  shape: ([x]) => (x ? [x] : []),
  forward({ target, inputs: [x], outputs: [y], attributes: factor }) {
    const scalars = { one: factor, c0_0: 3, x1_size0: 20, elements: 100 };
    if (x && y)
      target.launch({ kernel: affine, bindings: [x, y], scalars: { ...scalars, count: x.length } });
  },
  backward: "none",
});

/** factor · x, under any name, by a function whose name other expressions may use too. */
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

  test("a kernel whose parameters are called as a program's takes one into its store", async () => {
    const runtime = await runners[runner](options);
    const results = [];
    for (const factor of [5, 6])
      for (const dtype of ["float32", "float16"] as const)
        results.push(
          await numbers(
            await runtime.step(() => {
              const x = runtime.tensor([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]).to(dtype);
              const bias = runtime.tensor([0, 1, 0, 1]);
              return affineOp.apply([x], factor).mul(factor).add(bias).relu().neg();
            }),
          ),
        );
    const wanted = (factor: number): number[] =>
      [1, 2, 3, 4, 5, 6, 7, 8].map((x, i) => -((factor * x + 123) * factor + (i % 2)));
    expect(results).toEqual([5, 5, 6, 6].map(wanted));
  });
});
