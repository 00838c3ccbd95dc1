import { autocast } from "@halfstep/autocast";
import type { Binding, Launch } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import {
  attention,
  attentionKeyValueGradient,
  attentionQueryGradient,
  attentionStatistics,
  concatenate,
  permute,
  type ShapedBinding,
  stridedCopy,
} from "@halfstep/kernels";
import { headsOf } from "@halfstep/kernels/planner";
import { describe, expect, test } from "vitest";
import { graph, names, opaque, transient } from "../../../test/graphs.js";
import {
  cat,
  cpuRuntime,
  Generator,
  gpuRuntime,
  linear,
  type Runtime,
  scaledDotProductAttention,
  type Tensor,
  type Variable,
} from "../../index.js";
import type { Storage } from "../../record/storage.js";
import { allPasses, type PassName } from "../pipeline.js";
import { foldHeadLayouts } from "./fold-head-layouts.js";

const [batch, tokens, heads, size] = [2, 6, 3, 8];
const entries = batch * heads;
const count = entries * tokens * size;
const byTokens = [batch, tokens, heads, size];
const byHeads = [batch, heads, tokens, size];

type B = ShapedBinding<Storage>;

const split = (input: B, out: B): Launch<Storage> =>
  permute({ input, out }, { shape: byTokens, order: [0, 2, 1, 3] });
const join = (input: B, out: B): Launch<Storage> =>
  permute({ input, out }, { shape: byHeads, order: [0, 2, 1, 3] });

const shape = { entries, queries: tokens, keys: tokens, size, width: size, scale: 1 };

/** The only launch of a function that takes a target. */
function launched(record: (target: Parameters<typeof attention<Storage>>[0]) => void) {
  const launches: Launch<Storage>[] = [];
  const allocate = (): Storage => transient().buffer;
  record({ launch: (launch) => launches.push(launch), allocate });
  return launches[0] as Launch<Storage>;
}

const forward = (query: Binding<Storage>, key: B, value: B, out: B): Launch<Storage> =>
  launched((target) =>
    attention(
      target,
      { query, key, value, out, normalizers: transient((count / size) * 2) },
      shape,
    ),
  );

/** Name, start and steps of all operands that a node addresses by layouts. */
function layouts(launch: Launch<Storage> | undefined): readonly string[] {
  const { bindings } = launch as Launch<Storage>;
  return headsOf(launch as Launch<Storage>).map(({ name, layout, binding }) => {
    const { start, batch: b, head, token } = layout;
    return `${name} in ${bindings[binding]?.length}: ${start} + ${[b, head, token].join(" ")}`;
  });
}

const row = heads * size;
const joinedLayout = `0 + ${[tokens * row, size, row].join(" ")}`;

describe("a copy into heads", () => {
  const [x, q] = [transient(count), transient(count)];
  const [k, v, out, y] = [0, 1, 2, 3].map(() => transient(count)) as [B, B, B, B];

  test("is read where it was copied from, by all who read it", () => {
    const again = transient(count);
    const folded = foldHeadLayouts(
      graph([opaque([], [x]), split(x, q), forward(q, k, v, out), forward(q, q, v, again)]),
    );
    expect(names(folded)).toEqual(["opaque", "attention", "attention"]);
    const moved = `in ${count}: ${joinedLayout}`;
    expect(layouts(folded.nodes[1]?.launch)[0]).toBe(`query ${moved}`);
    expect(layouts(folded.nodes[2]?.launch).slice(0, 2)).toEqual([
      `query ${moved}`,
      `key ${moved}`,
    ]);
  });

  test("stays where others want it, or what was copied changes first", () => {
    const launches = [opaque([], [x]), split(x, q), forward(q, k, v, out)];
    const stays = (g: Parameters<typeof foldHeadLayouts>[0]): void =>
      expect(foldHeadLayouts(g).nodes).toEqual(g.nodes);
    stays(graph([...launches, opaque([q], [y])]));
    stays(graph(launches, { kept: [q.buffer] }));
    stays(graph([...launches.slice(0, 2), opaque([], [x]), ...launches.slice(2)]));
    const half = transient(count, "float16");
    stays(graph([split(x, half), forward(half, half, half, transient(count, "float16"))]));
    const other = transient(count);
    const along = permute({ input: x, out: other }, { shape: byTokens, order: [0, 2, 3, 1] });
    stays(graph([along, forward(other, k, v, out)]));
  });

  test("of a slice of a wide row is read there if all of its slices are", () => {
    const wide = transient(3 * count);
    const slices = [0, 1, 2].map((part) => {
      const [narrow, own] = [transient(count), transient(count)];
      const dimensions = [
        { size: batch * tokens, stride: 3 * row },
        { size: row, stride: 1 },
      ];
      const slice = stridedCopy({ input: wide, out: narrow }, { dimensions, offset: part * row });
      return { launches: [slice, split(narrow, own)], own };
    });
    const [a, b, c] = slices.map(({ own }) => own) as [B, B, B];
    const before = slices.flatMap(({ launches }) => launches);
    const all = foldHeadLayouts(graph([...before, forward(a, b, c, out)]));
    expect(names(all)).toEqual(["attention"]);
    expect(layouts(all.nodes[0]?.launch).slice(0, 3)).toEqual(
      ["query", "key", "value"].map(
        (name, part) =>
          `${name} in ${3 * count}: ${part * row} + ${[3 * tokens * row, size, 3 * row].join(" ")}`,
      ),
    );
    const one = foldHeadLayouts(graph([...before.slice(0, 2), forward(a, k, v, out)]));
    expect(names(one)).toEqual(["stridedCopy", "attention"]);
    expect(layouts(one.nodes[1]?.launch)[0]).toBe(`query in ${count}: ${joinedLayout}`);
  });

  test("that begins within a quad stays", () => {
    const wide = transient(count + 4);
    const dimensions = byHeads.map((length, d) => ({
      size: length,
      stride: [tokens * row, size, row, 1][d] as number,
    }));
    const at = (offset: number): string[] => {
      const copy = stridedCopy({ input: wide, out: q }, { dimensions, offset });
      const last = opaque([wide], [transient()]);
      return names(foldHeadLayouts(graph([copy, forward(q, q, q, out), last])));
    };
    expect(at(2)).toEqual(["stridedCopy", "attention", "opaque"]);
    expect(at(4)).toEqual(["attention", "opaque"]);
  });
});

describe("a copy out of heads", () => {
  const [q, g, o, y, z] = [0, 1, 2, 3, 4].map(() => transient(count)) as [B, B, B, B, B];
  const statistics = transient((count / size) * 4);

  test("is what attention stores, and where others find it", () => {
    const reader = attentionStatistics(
      { out: o, outGradient: g, normalizers: transient((count / size) * 2), statistics },
      shape,
    );
    const folded = foldHeadLayouts(
      graph([forward(q, q, q, o), join(o, y), opaque([y], [z]), reader]),
    );
    expect(names(folded)).toEqual(["attention", "opaque", "attentionStatistics"]);
    const moved = `in ${count}: ${joinedLayout}`;
    expect(layouts(folded.nodes[0]?.launch)[3]).toBe(`out ${moved}`);
    expect(layouts(folded.nodes[2]?.launch)[0]).toBe(`out ${moved}`);
    expect(folded.nodes[0]?.launch.kernel.bindings[3]?.access).toBe("write");
    const other = graph([forward(q, q, q, o), opaque([o], [z]), join(o, y), opaque([y], [z])]);
    expect(foldHeadLayouts(other).nodes).toEqual(other.nodes);
  });

  test("of several gradients put together is stored by each in its part", () => {
    const parts = [0, 1, 2].map(() => transient(count)) as [B, B, B];
    const [queryGradient, keyGradient, valueGradient] = parts;
    const operands = { query: q, key: q, value: q, outGradient: g, statistics };
    const backward = [
      launched((target) => attentionQueryGradient(target, { ...operands, queryGradient }, shape)),
      launched((target) =>
        attentionKeyValueGradient(target, { ...operands, keyGradient, valueGradient }, shape),
      ),
    ];
    const [together, joined] = [transient(3 * count), transient(3 * count)];
    const sizes = [1, 1, 1];
    const copies = [
      concatenate({ inputs: parts, out: together }, { outer: 1, sizes, inner: count }),
      permute({ input: together, out: joined }, { shape: [3, ...byHeads], order: [1, 3, 0, 2, 4] }),
    ];
    const before = [...backward, ...copies, opaque([joined], [z])];
    const folded = foldHeadLayouts(graph(before));
    expect(names(folded)).toEqual([
      "attentionQueryGradient",
      "attentionKeyValueGradient",
      "opaque",
    ]);
    const [one, two] = folded.nodes.map(({ launch }) => launch);
    const stored = [...layouts(one).slice(4), ...layouts(two).slice(4)];
    expect(stored).toEqual(
      ["queryGradient", "keyGradient", "valueGradient"].map(
        (name, part) =>
          `${name} in ${3 * count}: ${part * row} + ${[3 * tokens * row, size, 3 * row].join(" ")}`,
      ),
    );
    expect(two?.kernel.bindings.at(-1)).toEqual({ name: "results", access: "readwrite" });
    expect(two?.bindings).toHaveLength(6);
    const last = [...backward, opaque([], [joined]), ...copies];
    expect(foldHeadLayouts(graph(last)).nodes).toHaveLength(4);
    // The tensor before the permutation has readers of its own.
    expect(names(foldHeadLayouts(graph([...before, opaque([together], [z])])))).toContain(
      "stridedCopy",
    );
  });
});

interface Model {
  readonly heads: number;
  readonly size: number;
  readonly length: number;
  /** Whether heads of queries share those of keys and values. */
  readonly enableGqa?: boolean;
  /**
   * The numbers of copies in its step without and with the pass; the remaining ones copy gradients of weights and scratch
   * memory.
   */
  readonly copies: readonly [before: number, after: number];
  split(x: Tensor, weights: readonly Tensor[]): readonly Tensor[];
}

const headsIn = (x: Tensor, { heads: h, size: s }: Pick<Model, "heads" | "size">): Tensor =>
  x.reshape([...x.shape.slice(0, 2), h, s]).permute([0, 2, 1, 3]);

/** How models compute queries, keys and values. */
const models: Readonly<Record<string, Model>> = {
  "a product for each": {
    ...{ heads: 2, size: 8, length: 7, copies: [8, 0] },
    split(x, weights) {
      return weights.map((w) => headsIn(linear(x, w), this));
    },
  },
  "parts of a permuted product": {
    ...{ heads: 2, size: 8, length: 7, copies: [6, 0] },
    split(x, weights) {
      const { heads: h, size: s } = this;
      const parts = linear(x, cat(weights))
        .reshape([...x.shape.slice(0, 2), 3, h, s])
        .permute([2, 0, 3, 1, 4]);
      return [0, 1, 2].map((part) => parts.select(0, part));
    },
  },
  "slices of a product, permuted": {
    ...{ heads: 3, size: 4, length: 5, copies: [13, 2] },
    split(x, weights) {
      const { heads: h, size: s } = this;
      const product = linear(x, cat(weights));
      return [0, 1, 2].map((part) => headsIn(product.narrow(2, part * h * s, h * s), this));
    },
  },
  "products of fewer heads of keys": {
    ...{ heads: 4, size: 8, length: 7, enableGqa: true, copies: [10, 2] },
    split(x, [query, ...others]) {
      const { heads: h, size: s } = this;
      const shared = others.map((w) =>
        headsIn(linear(x, w.narrow(0, 0, (h * s) / 2)), { heads: h / 2, size: s }),
      );
      return [headsIn(linear(x, query as Tensor), this), ...shared];
    },
  },
  "heads of an odd size": {
    ...{ heads: 2, size: 3, length: 5, copies: [12, 8] },
    split(x, weights) {
      return weights.map((w) => headsIn(linear(x, w), this));
    },
  },
};

async function trained(runtime: Runtime, model: Model, dtype: "float32" | "float16") {
  const width = model.heads * model.size;
  const parameter = (rows: number, columns: number, seed: number): Variable => {
    const values = Float32Array.from(
      { length: rows * columns },
      (_, i) => Math.sin(seed + 1.3 * i) / 2,
    );
    return runtime.variable(values, [rows, columns], { requiresGrad: true });
  };
  const parameters = [1, 2, 3, 4].map((seed) => parameter(width, width, seed));
  const [last, ...weights] = parameters as [Variable, ...Variable[]];
  const input = parameter(3 * model.length, width, 5);
  const generator = new Generator(3);
  const { enableGqa = false } = model;
  for (let step = 0; step < 2; step++)
    await runtime.step(() => {
      const forwarded = (): Tensor => {
        const x = input.reshape([3, model.length, width]);
        const [query, key, value] = model.split(x, weights) as [Tensor, Tensor, Tensor];
        const options = { isCausal: true, enableGqa, dropout: { p: 0.25, generator } };
        const attended = scaledDotProductAttention(query, key, value, options);
        return linear(attended.permute([0, 2, 1, 3]).reshape(x.shape), last)
          .square()
          .mean();
      };
      const loss = dtype === "float32" ? forwarded() : autocast({ dtype }, forwarded);
      loss.backward();
      for (const p of parameters) if (p.grad) p.assign(p.sub(p.grad.mul(0.5)));
      for (const p of [...parameters, input]) p.zeroGrad();
      return 0;
    });
  const arrays = await Promise.all(parameters.map((p) => p.toArray()));
  const plan = runtime.lastPlan;
  const copies = plan?.launches.filter(({ launch }) => launch.kernel.name === "stridedCopy").length;
  return { values: arrays.flatMap((each) => [...each]), copies };
}

const without = allPasses.filter((name) => name !== "foldHeadLayouts");

describe.each(Object.entries(models))("queries, keys and values as %s", (_, model) => {
  test.each(["float32", "float16"] as const)("train to the same bits in %s", async (dtype) => {
    const [none, others, all] = await Promise.all(
      [[], without, allPasses].map((passes: readonly PassName[]) =>
        trained(cpuRuntime({ passes }), model, dtype),
      ),
    );
    expect(all?.values).toEqual(none?.values);
    expect(all?.values).toEqual(others?.values);
    expect([others?.copies, all?.copies]).toEqual(model.copies);
  });
});

test("the same on a GPU, with all three gradients in one buffer", async () => {
  const device = await requestTestDevice();
  // Programs of wide heads have fewer rows a tile, and take the compiler half as long. The gradients of wide weights lie so far apart in
  // that of their concatenation that these need no copies.
  const model: Model = {
    ...(models["parts of a permuted product"] as Model),
    ...{ size: 64, length: 5, copies: [4, 0] },
  };
  const train = (passes: readonly PassName[]) =>
    trained(gpuRuntime(device, { passes }), model, "float16");
  const [before, after] = [await train(without), await train(allPasses)];
  expect(after.values).toHaveLength(4 * 128 * 128);
  expect(after.values.findIndex((value, i) => !Object.is(value, before.values[i]))).toBe(-1);
  expect([before.copies, after.copies]).toEqual(model.copies);
});

/** Attention whose operands, or whose result, lie in reverse along some axes. */
const reversed: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  ...Object.fromEntries(
    [0, 1, 2, 3].flatMap((axis): [string, (x: Tensor) => Tensor][] => [
      [`the queries, axis ${axis}`, (x) => scaledDotProductAttention(x.flip(axis), x, x)],
      [
        `keys and values, axis ${axis}`,
        (x) => scaledDotProductAttention(x, x.flip(axis), x.flip(axis)),
      ],
      [`the result, axis ${axis}`, (x) => scaledDotProductAttention(x, x, x).flip(axis)],
    ]),
  ),
  "the result, permuted": (x) => scaledDotProductAttention(x, x, x).permute([0, 2, 1, 3]).flip(1),
  "permuted queries": (x) =>
    scaledDotProductAttention(x.permute([1, 0, 2, 3]).flip([0, 2]).permute([1, 0, 2, 3]), x, x),
  "every other token": (x) => scaledDotProductAttention(x, x, x).slice(2, { step: 2 }),
};

async function gradientsThrough(runtime: Runtime, dtype: "float32" | "float16") {
  const shape = [2, 2, 3, 8];
  const values = Float32Array.from({ length: 96 }, (_, i) => Math.sin(1 + 1.7 * i));
  const found: Record<string, readonly number[]> = {};
  for (const [name, attended] of Object.entries(reversed)) {
    const x = runtime.variable(values, shape, { requiresGrad: true });
    const y = await runtime.step(() => {
      const y = autocast({ dtype: "float16", enabled: dtype === "float16" }, () => attended(x));
      const weights = runtime.tensor(values.slice(0, y.size), y.shape);
      y.to("float32").mul(weights).sum().backward();
      return y;
    });
    found[name] = [...(await y.toArray()), ...(await (x.grad as Tensor).toArray())];
  }
  return found;
}

test.each(["float32", "float16"] as const)(
  "what is reversed before or behind attention keeps its copy, in %s",
  async (dtype) => {
    const expected = await gradientsThrough(cpuRuntime({ passes: [] }), dtype);
    expect(await gradientsThrough(cpuRuntime(), dtype)).toEqual(expected);
    const gpu = await gradientsThrough(gpuRuntime(await requestTestDevice()), dtype);
    const tolerance = dtype === "float32" ? 1e-4 : 1e-2;
    for (const [name, values] of Object.entries(expected))
      expect([
        name,
        gpu[name]?.findIndex((v, i) => !(Math.abs(v - (values[i] as number)) < tolerance)),
      ]).toEqual([name, -1]);
  },
);
