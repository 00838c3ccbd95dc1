import { autocast } from "@halfstep/autocast";
import type { Binding, HalfDType, Launch } from "@halfstep/device";
import { defineKernel, elementwise, matmul, relu, type ShapedBinding } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  graph,
  memoryMistakes,
  names,
  opaque,
  resident,
  storageOf,
  transient,
} from "../../../test/graphs.js";
import { cpuRuntime, layerNorm, linear, type Variable } from "../../index.js";
import { allPasses, type PassName } from "../../internals.js";
import { Storage } from "../../record/storage.js";
import { assignMemory } from "../assign-memory.js";
import type { PlanGraph } from "../graph.js";
import { storeBothPrecisions } from "./store-both-precisions.js";

type Value = ShapedBinding<Storage>;
const size = 8;
const value = (): Value => transient(size * size);

/** A launch that can store its result twice, and is not elementwise. */
function product(a: Binding<Storage>, out: Value): Launch<Storage> {
  const launches: Launch<Storage>[] = [];
  matmul(
    { allocate: (bytes) => new Storage({}, bytes), launch: (launch) => launches.push(launch) },
    { a, b: resident(size * size, "float16"), out },
    { m: size, n: size, k: size },
  );
  return launches[0] as Launch<Storage>;
}

const rounded = (binding: Value, rounding: HalfDType = "float16"): Value => ({
  ...binding,
  rounding,
});

/** The launch, loading only so many elements of its first operand. */
function part(launch: Launch<Storage>, length: number): Launch<Storage> {
  const [first, ...rest] = launch.bindings as [Binding<Storage>, ...Binding<Storage>[]];
  return { ...launch, bindings: [{ ...first, length }, ...rest] };
}

/** A pass's result, which must be a graph that memory can be planned for. */
function twinned(before: PlanGraph): PlanGraph {
  const after = storeBothPrecisions(before);
  for (const reuse of [false, true])
    expect(memoryMistakes(after, assignMemory(after, reuse))).toEqual([]);
  return after;
}

describe("what a product loads rounded", () => {
  test("may be two results of one launch", () => {
    const [x, y] = [value(), value()];
    const kernel = defineKernel({
      name: "both",
      bindings: [
        { name: "x", access: "write" },
        { name: "y", access: "write" },
      ],
      body: () => "",
      workgroups: () => [1, 1, 1],
      reference() {},
    });
    const after = twinned(
      graph([
        { kernel, bindings: [x, y], scalars: {} },
        product(rounded(x), value()),
        product(rounded(y, "bfloat16"), value()),
        opaque([x, y], []),
      ]),
    );
    const [{ launch }] = after.nodes as [PlanGraph["nodes"][number]];
    const names = launch.kernel.bindings.map((binding) => binding.name);
    expect(names).toEqual(["x", "y", "woven_x_twin", "woven_y_twin"]);
    expect([0, 1, 2, 3].map((b) => storageOf(after, 0, b))).toEqual([
      ...["float32", "float32", "float16", "bfloat16"],
    ]);
    expect([1, 2].map((n) => storageOf(after, n, 0))).toEqual(["float16", "bfloat16"]);
  });

  test("is stored twice where others want it whole", () => {
    const [x, y, z] = [value(), value(), value()];
    const after = twinned(
      graph([
        product(resident(size * size), x),
        product(rounded(x), y),
        product(rounded(x), z),
        opaque([x, rounded(x), y, z], []),
      ]),
    );
    expect(names(after)).toEqual(["matmul", "matmul", "matmul", "opaque"]);
    expect(after.nodes[0]?.launch.kernel.variant).toMatch(/ twice$/);
    expect([2, 3].map((b) => storageOf(after, 0, b))).toEqual(["float32", "float16"]);
    expect([1, 2].map((n) => storageOf(after, n, 0))).toEqual(["float16", "float16"]);
    expect([0, 1].map((b) => storageOf(after, 3, b))).toEqual(["float32", "float16"]);
  });

  test("is stored once, narrow, where nobody does", () => {
    const [x, y] = [value(), value()];
    const after = twinned(
      graph([product(resident(size * size), x), product(rounded(x), y), opaque([y], [])]),
    );
    expect(after.nodes[0]?.launch.bindings).toHaveLength(3);
    expect([storageOf(after, 0, 2), storageOf(after, 1, 0)]).toEqual(["float16", "float16"]);
  });

  test("may come from an elementwise launch", () => {
    const [x, y] = [value(), value()];
    const before = graph([
      elementwise(relu, [resident(size * size)], x),
      product(rounded(x), y),
      opaque([x, y], []),
    ]);
    expect(storageOf(twinned(before), 0, 2)).toBe("float16");
  });
});

describe("a value is stored as before", () => {
  const [x, y] = [value(), value()];
  const half = transient(size * size, "float16");
  const reads = (...extra: Value[]) => [product(rounded(x), y), opaque([x, y, ...extra], [])];
  const from = product(resident(size * size), x);
  const cases: [string, PlanGraph][] = [
    ["that the step keeps", graph([from, ...reads()], { kept: [x.buffer] })],
    ["that no product rounds", graph([from, product(x, y), opaque([rounded(x), y], [])])],
    ["whose producer cannot", graph([opaque([], [x]), ...reads()])],
    [
      "of which a part is loaded",
      graph([from, part(product(rounded(x), y), size), opaque([x, y], [])]),
    ],
    [
      "that has 16 bits already",
      graph([
        product(resident(size * size), half),
        product(rounded(half, "bfloat16"), y),
        opaque([half, y], []),
      ]),
    ],
    [
      "that is written more than once",
      graph([from, product(resident(size * size), x), ...reads()]),
    ],
  ];
  test.each(cases)("%s", (_, before) => {
    expect(twinned(before)).toEqual(before);
  });

  test("whose producer has eight bindings", () => {
    const operands = Array.from({ length: 7 }, () => resident(size * size));
    const kernel = defineKernel({
      name: "wide",
      bindings: [
        ...operands.map((_, i) => ({ name: `x${i}`, access: "read" as const })),
        { name: "out", access: "write" },
      ],
      body: () => "",
      workgroups: () => [1, 1, 1],
      reference() {},
    });
    const launch = { kernel, bindings: [...operands, x], scalars: {} };
    const before = graph([launch, ...reads()]);
    expect(twinned(before)).toEqual(before);
  });
});

test.each(["float16", "bfloat16"] as const)(
  "a post-norm network trains to the same bits in %s",
  async (dtype) => {
    const [width, rows] = [16, 24];
    const train = async (passes: readonly PassName[]) => {
      const runtime = cpuRuntime({ passes });
      const parameter = (seed: number): Variable => {
        const values = Float32Array.from(
          { length: width ** 2 },
          (_, i) => Math.sin(seed + 1.3 * i) / 4,
        );
        return runtime.variable(values, [width, width], { requiresGrad: true });
      };
      const weights = [1, 2, 3].map(parameter);
      const input = runtime.tensor(
        Float32Array.from({ length: rows * width }, (_, i) => Math.cos(i * 0.7)),
        [rows, width],
      );
      for (let step = 0; step < 2; step++)
        await runtime.step(() => {
          autocast({ dtype }, () => {
            let x = layerNorm(input, width);
            for (const w of weights) x = layerNorm(x.add(linear(x, w).tanh()), width);
            return x.square().mean();
          }).backward();
          for (const w of weights) if (w.grad) w.assign(w.sub(w.grad.mul(0.1)));
          for (const w of weights) w.zeroGrad();
          return 0;
        });
      const arrays = await Promise.all(weights.map((w) => w.toArray()));
      return { values: arrays.flatMap((each) => [...each]), plan: runtime.lastPlan };
    };
    const plain = await train(allPasses.filter((name) => name !== "storeBothPrecisions"));
    const twice = await train(allPasses);
    expect(twice.values).toEqual(plain.values);
    // Weights without an optimizer are residents without a producer in the step.
    const roundsInLoads = ({ plan }: typeof plain): number =>
      (plan?.launches ?? []).filter(
        ({ launch: { kernel, bindings } }) =>
          kernel.operations &&
          bindings.some(
            ({ buffer, rounding }, b) =>
              rounding && buffer.kind === "slot" && kernel.bindings[b]?.access === "read",
          ),
      ).length;
    expect(roundsInLoads(plain)).toBeGreaterThan(3);
    expect(roundsInLoads(twice)).toBe(0);
  },
);
