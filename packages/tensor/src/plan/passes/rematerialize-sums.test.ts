import { autocast } from "@halfstep/autocast";
import { add, elementwise, gather, mul, type ShapedBinding } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  graph,
  inPlace,
  memoryMistakes,
  names,
  opaque,
  resident,
  transient,
} from "../../../test/graphs.js";
import { cpuRuntime, embedding, layerNorm, linear, type Variable } from "../../index.js";
import { allPasses, type PassName } from "../../internals.js";
import type { Storage } from "../../record/storage.js";
import { assignMemory, heldForBackward } from "../assign-memory.js";
import type { PlanGraph } from "../graph.js";
import { rematerializeSums } from "./rematerialize-sums.js";

type Value = ShapedBinding<Storage>;

const size = 16_384;
const wide = (): Value => transient(size);
const half = (): Value => transient(size, "float16");
const sum = (a: Value, b: Value, out: Value) => elementwise(add, [a, b], out);
const read = (...values: readonly Value[]) => opaque(values, [transient(4)]);

const heldBytes = ({ nodes }: PlanGraph): number =>
  [...heldForBackward(nodes)].reduce((bytes, { byteLength }) => bytes + byteLength, 0);

/** A pass's result, which must be a graph that memory can be planned for. */
function recomputed(before: PlanGraph): PlanGraph {
  const after = rematerializeSums(before);
  for (const reuse of [false, true])
    expect(memoryMistakes(after, assignMemory(after, reuse))).toEqual([]);
  return after;
}

test("a sum of what is held and of what is narrower is added again where it is first read", () => {
  const [x, branch, y] = [wide(), half(), wide()];
  const before = graph(
    [opaque([], [x]), opaque([], [branch]), sum(x, branch, y), read(y), read(y), read(y), read(x)],
    { backward: 4 },
  );
  const after = recomputed(before);
  expect(names(after).map((name) => name.replace("opaque", "·"))).toEqual([
    "·",
    "·",
    "add",
    "·",
    "add",
    "·",
    "·",
    "·",
  ]);
  expect(after.nodes[4]?.isBackward).toBe(true);
  expect(after.nodes[4]?.recorded).toEqual([2]);
  expect([heldBytes(before), heldBytes(after)]).toEqual([size * 8, size * 6]);
});

test("of a chain of sums every second one is, because the others are needed to add it", () => {
  const values = Array.from({ length: 7 }, wide);
  const branches = Array.from({ length: 6 }, half);
  const sums = branches.flatMap((branch, i) => [
    opaque([], [branch]),
    sum(values[i] as Value, branch, values[i + 1] as Value),
  ]);
  const launches = [opaque([], [values[0] as Value]), ...sums];
  const backward = values.toReversed().map((value) => read(value));
  const before = graph([...launches, ...backward], { backward: launches.length });
  const after = recomputed(before);
  expect(after.nodes.length).toBe(before.nodes.length + 3);
  expect(heldBytes(before) - heldBytes(after)).toBe(3 * size * 2);
});

test("rows of a parameter are looked up again, and not kept", () => {
  const [table, index] = [resident(size), transient(64, "uint32")];
  const [rows, positions, x] = [wide(), resident(size), wide()];
  const lookup = gather(
    { input: table, index, out: rows },
    { outer: 1, size: 64, inner: size / 64, count: 64, indexing: "rows" },
  );
  const before = graph(
    [opaque([], [index]), lookup, sum(rows, positions, x), read(x), read(x), read(index)],
    { backward: 4 },
  );
  const after = recomputed(before);
  expect(names(after)).toEqual([
    "opaque",
    "gather",
    "add",
    "opaque",
    "gather",
    "add",
    "opaque",
    "opaque",
  ]);
  expect(heldBytes(before) - heldBytes(after)).toBe(size * 4);
});

test("a sum of sums is added again as a whole, and looks each row up once", () => {
  const [table, index] = [resident(size), transient(64, "uint32")];
  const [rows, twice, x] = [wide(), wide(), wide()];
  const lookup = gather(
    { input: table, index, out: rows },
    { outer: 1, size: 64, inner: size / 64, count: 64, indexing: "rows" },
  );
  const before = graph(
    [
      ...[opaque([], [index]), lookup, sum(rows, rows, twice), sum(twice, resident(size), x)],
      ...[read(x), read(x), read(index)],
    ],
    { backward: 5 },
  );
  const after = recomputed(before);
  expect(names(after).slice(5)).toEqual(["gather", "add", "add", "opaque", "opaque"]);
  expect(heldBytes(before) - heldBytes(after)).toBe(size * 4);
});

describe("nothing is added again", () => {
  const [x, branch, y, w] = [wide(), half(), wide(), resident(size)];
  const other = wide();
  const start = [opaque([], [x]), opaque([], [branch])];
  const ends = [read(y), read(x)];
  const cases: [string, PlanGraph][] = [
    [
      "where the other term is not needed",
      graph([...start, sum(x, branch, y), read(y)], { backward: 3 }),
    ],
    [
      "where the other term is only loaded rounded, so that its twin is kept",
      graph([...start, sum(x, branch, y), read(y), read({ ...x, rounding: "float16" })], {
        backward: 3,
      }),
    ],
    [
      "where the terms take as much memory",
      graph([...start, opaque([], [other]), sum(x, other, y), ...ends], { backward: 4 }),
    ],
    [
      "where the backward pass does not read it",
      graph([...start, sum(x, branch, y), read(y), read(x)], { backward: 4 }),
    ],
    [
      "where a term changes in between",
      graph([...start, sum(w, branch, y), inPlace(w), ...ends], { backward: 4 }),
    ],
    [
      "where it outlives the step",
      graph([...start, sum(x, branch, y), ...ends], { backward: 3, kept: [y.buffer] }),
    ],
    [
      "where it takes more than additions",
      graph([...start, elementwise(mul, [x, branch], y), ...ends], { backward: 3 }),
    ],
    ["without a backward pass", graph([...start, sum(x, branch, y), ...ends])],
  ];
  test.each(cases)("%s", (_, before) => {
    expect(recomputed(before).nodes).toEqual(before.nodes);
  });
});

test("a residual network trains to the same bits with less memory", async () => {
  const [width, rows, words] = [64, 128, 40];
  const train = async (passes: readonly PassName[]) => {
    const runtime = cpuRuntime({ passes });
    const parameter = (shape: readonly number[], seed: number): Variable => {
      const length = shape.reduce((a, b) => a * b, 1);
      const values = Float32Array.from({ length }, (_, i) => Math.sin(seed + 1.3 * i) / 4);
      return runtime.variable(values, shape, { requiresGrad: true });
    };
    const table = parameter([words, width], 1);
    const places = parameter([rows, width], 2);
    const weights = [3, 4, 5].map((seed) => parameter([width, width], seed));
    const parameters = [table, places, ...weights];
    const index = runtime.tensor(Uint32Array.from({ length: rows }, (_, i) => (i * i) % words));
    for (let step = 0; step < 2; step++)
      await runtime.step(() => {
        const loss = autocast({ dtype: "float16" }, () => {
          let x = embedding(index, table, { paddingIndex: 1 }).add(places);
          for (const w of weights) x = x.add(linear(layerNorm(x, width), w).tanh());
          return layerNorm(x, width).square().mean();
        });
        loss.backward();
        for (const p of parameters) if (p.grad) p.assign(p.sub(p.grad.mul(0.1)));
        for (const p of parameters) p.zeroGrad();
        return 0;
      });
    const arrays = await Promise.all(parameters.map((p) => p.toArray()));
    return { values: arrays.flatMap((each) => [...each]), plan: runtime.lastPlan };
  };
  const without = allPasses.filter(
    (name) => name !== "rematerializeSums" && name !== "narrowStorage",
  );
  const [plain, saving] = [await train(without), await train(allPasses)];
  expect(saving.values).toEqual(plain.values);
  const bytes = [plain, saving].map(({ plan }) => plan?.statistics.activationBytes as number);
  expect((bytes[1] as number) / (bytes[0] as number)).toBeLessThan(0.85);
});
