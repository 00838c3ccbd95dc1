import { expect, test } from "vitest";
import { places } from "../../test/forward-check.js";
import { numbers } from "../../test/gradient-check.js";
import * as f from "../functional.js";
import { ArgumentError, cpuRuntime, Generator, grad, ShapeError, type Tensor } from "../index.js";

const listed = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

/** The cell of torch.nn.LSTM, of ops. */
const cellOf =
  ({ weightIh, weightHh, biasIh, biasHh }: f.RecurrentWeights) =>
  ({ hidden, cell }: Record<"hidden" | "cell", Tensor>, x: Tensor) => {
    const gates = f.linear(x, weightIh, biasIh).add(f.linear(hidden, weightHh, biasHh));
    const [i, forget, g, o] = f.chunk(gates, 4, 1) as [Tensor, Tensor, Tensor, Tensor];
    const kept = forget.sigmoid().mul(cell);
    const next = kept.add(i.sigmoid().mul(f.tanh(g)));
    const output = o.sigmoid().mul(f.tanh(next));
    return [{ hidden: output, cell: next }, output] as const;
  };

const shapes = [[5, 2, 3], [16, 3], [16, 4], [16], [16], [2, 4], [2, 4]] as const;

test.each([false, true])(
  "a scan of an LSTM's cell has the values and gradients of lstm(), reverse %s",
  async (reverse) => {
    const runtime = cpuRuntime({ arithmetic: "float64" });
    const all = shapes.map((shape, i) =>
      runtime.tensor(
        numbers(
          shape.reduce((a, b) => a * b, 1),
          i,
        ),
        shape,
        { requiresGrad: true },
      ),
    );
    const [x, weightIh, weightHh, biasIh, biasHh, hidden, cell] = all as [
      ...[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor],
    ];
    const weights = { weightIh, weightHh, biasIh, biasHh };
    const [last, output] = f.scan(cellOf(weights), { hidden, cell }, x, { reverse });
    const layer = f.lstm(x, weights, { hidden, cell, reverse });
    const pairs = [
      [output, layer.output],
      [last.hidden, layer.hidden],
      [last.cell, layer.cell],
    ] as const;
    const gradients = [0, 1].map((which) =>
      grad(
        pairs
          .map((pair, i) =>
            (pair[which] as Tensor)
              .mul(i + 1)
              .square()
              .sum(),
          )
          .reduce((a, b) => a.add(b)),
        all,
      ),
    ) as [Tensor[], Tensor[]];
    for (const [mine, own] of [
      ...pairs,
      ...gradients[0].map((g, i) => [g, gradients[1][i]] as const),
    ]) {
      const expected = await listed(own as Tensor);
      for (const [i, value] of (await listed(mine as Tensor)).entries())
        expect(value).toBeCloseTo(expected[i] as number, 12);
      expect((mine as Tensor).shape).toEqual((own as Tensor).shape);
    }
  },
);

test.each(places.filter(([, dtype]) => dtype !== "bfloat16"))(
  "carries, elements and results are arrays and objects, in steps too: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const { last, all } = await runtime.step(() => {
      const [x, y] = [0, 10].map((from) =>
        runtime.tensor(
          [1, 2, 3].map((v) => v + from),
          [3],
          { dtype },
        ),
      ) as [Tensor, Tensor];
      const [last, all] = f.scan(
        ([sum, count], { x, pair: { y } }) => [
          [sum.add(x), count + 1],
          { sums: [sum, x.mul(y)], none: undefined },
        ],
        [runtime.tensor(0, [], { dtype }), 0],
        { x, pair: { y }, nothing: null },
      );
      return { last, all };
    });
    expect([await listed(last[0]), last[1]]).toEqual([[6], 3]);
    expect(all.none).toBeUndefined();
    expect(await Promise.all(all.sums.map(listed))).toEqual([
      [0, 1, 3],
      [11, 24, 39],
    ]);
    expect(all.sums.map((each) => each.dtype)).toEqual([dtype, dtype]);
  },
);

test("results stay in the places of their elements when a scan goes backwards", async () => {
  const x = cpuRuntime().tensor([1, 2, 3]);
  const sums = (sum: Tensor, each: Tensor) => [sum.add(each), sum.add(each)] as const;
  const [last, all] = f.scan(sums, x.runtime.zeros([]), x, { reverse: true });
  expect([await last.item(), await listed(all)]).toEqual([6, [6, 5, 3]]);
});

test("a scan without elements takes its length, and feeds itself", async () => {
  const runtime = cpuRuntime();
  const doubled = (x: Tensor) => [x.mul(2), x] as const;
  const [last, all] = f.scan(doubled, runtime.tensor([1, 3]), undefined, { length: 4 });
  expect([await listed(last), all.shape]).toEqual([
    [16, 48],
    [4, 2],
  ]);
  expect(await listed(all)).toEqual([1, 3, 2, 6, 4, 12, 8, 24]);
});

test("of one element and of none", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(5);
  const count = runtime.variable([0], []);
  const step = (state: Tensor, x: Tensor) => {
    count.assign(count.add(1));
    const next = state.add(f.dropout(x, { p: 0.5, generator }).sum());
    return [next, { next, x }] as const;
  };
  const start = runtime.variable([7], []);
  const [one, single] = f.scan(step, start, runtime.zeros([1, 4]));
  expect([await one.item(), single.next.shape, single.x.shape]).toEqual([7, [1], [1, 4]]);
  const drawn = generator.offset;
  const [none, empty] = f.scan(step, start, runtime.zeros([0, 4], { dtype: "float16" }));
  expect([await none.item(), empty.next.shape, empty.x.shape]).toEqual([7, [0], [0, 4]]);
  expect([await listed(empty.x), empty.x.dtype]).toEqual([[], "float16"]);
  expect([generator.offset, await count.item()]).toEqual([drawn, 1]);
});

test("launches grow with the length, and each length has one plan", async () => {
  const runtime = cpuRuntime();
  const weights = shapes.slice(1, 5).map((shape) => runtime.zeros(shape)) as [
    Tensor,
    Tensor,
    Tensor,
    Tensor,
  ];
  const [weightIh, weightHh, biasIh, biasHh] = weights;
  const cell = cellOf({ weightIh, weightHh, biasIh, biasHh });
  const zeros = runtime.zeros([2, 4]);
  const planOf = async (length: number) => {
    await runtime.step(() => {
      const x = runtime.tensor(new Float32Array(6 * length), [length, 2, 3]);
      return f.scan(cell, { hidden: zeros, cell: zeros }, x)[1];
    });
    return runtime.lastPlan;
  };
  const plans = [await planOf(7), await planOf(14), await planOf(21)];
  expect(plans.map((plan) => plan?.launches.length)).toEqual([50, 101, 151]);
  expect(await planOf(14)).toBe(plans[1]);
});

test("mistakes are refused by name", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2, 3]);
  const [state, keep] = [runtime.zeros([3]), (s: Tensor, y: unknown) => [s, y] as const];
  const refused = (fn: () => unknown, kind: typeof ArgumentError, text: string) => {
    expect(fn).toThrow(kind);
    expect(fn).toThrow(text);
  };
  const wrongs: readonly [() => unknown, typeof ArgumentError, string][] = [
    [() => f.scan(keep, state, [x, runtime.zeros([4])]), ShapeError, "[2,3] and [4]"],
    [() => f.scan(keep, state, runtime.zeros([])), ShapeError, "[] and []"],
    [() => f.scan(keep, state, x, { length: 3 }), ShapeError, "length is 3, but xs has 2"],
    [() => f.scan(keep, state, undefined), ArgumentError, "say how many steps"],
    [() => f.scan(keep, state, null, { length: -1 }), ArgumentError, "at least 0"],
    [() => f.scan(keep, state, [x, 3]), ArgumentError, "xs must be a tensor"],
    [() => f.scan(keep, state, [x, new Map()]), ArgumentError, "an object of a class"],
    [() => f.scan((s) => [s, 3], state, x), ArgumentError, "a step's result must be a tensor"],
    [() => f.scan((s) => s as never, state, x), ArgumentError, "must return [carry, result]"],
  ];
  for (const [fn, kind, text] of wrongs) refused(fn, kind, text);
  let calls = 0;
  const changing = (results: readonly unknown[]) => () =>
    f.scan((s) => [s, results[calls++ % 2]], state, x);
  for (const results of [
    [state, undefined],
    [undefined, state],
    [[state], [state, state]],
    [{ a: state }, { b: state }],
    [[state], { 0: state }],
  ])
    refused(changing(results), ArgumentError, "results with the same members");
  refused(changing([state, x]), ShapeError, "differ");
  expect(() => f.scan((async () => []) as never, state, x)).toThrow("returned a promise");
});
