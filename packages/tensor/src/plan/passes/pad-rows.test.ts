import type { DType, Launch } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { type MatmulAttributes, matmul, type ShapedBinding } from "@halfstep/kernels";
import { expect, test } from "vitest";
import { graph, memoryMistakes, names, resident, transient } from "../../../test/graphs.js";
import { gpuRuntime, grad, type Runtime, relu, type Tensor } from "../../index.js";
import { allPasses, type PassName } from "../../internals.js";
import { Storage } from "../../record/storage.js";
import { assignMemory } from "../assign-memory.js";
import { padRows } from "./pad-rows.js";

type Value = ShapedBinding<Storage>;

interface Product extends MatmulAttributes {
  readonly dtype?: DType;
  readonly a?: Value;
}

/** The graph of one product, of [m, k] and [k, n]. */
function productOf({ dtype = "float32", a, ...attributes }: Product) {
  const { m, n, k, batch = 1 } = attributes;
  const launches: Launch<Storage>[] = [];
  const operands = {
    a: a ?? resident(batch * m * k, dtype),
    b: resident(k * n, dtype),
    out: transient(batch * m * n),
  };
  matmul(
    { allocate: (bytes) => new Storage({}, bytes), launch: (launch) => launches.push(launch) },
    operands,
    attributes,
  );
  return { ...operands, before: graph(launches, { kept: [operands.out.buffer] }) };
}

/** Distance between rows of the factors that products load after the pass, in elements. */
const stridesOf = (product: Product): unknown[] => {
  const { nodes } = padRows(productOf(product).before);
  const { a_stride, b_stride } = nodes.at(-1)?.launch.scalars ?? {};
  return [nodes.length - 1, a_stride, b_stride];
};

test("both factors of a product are copied to rows further apart", () => {
  const { a, b, out, before } = productOf({ m: 1024, n: 1024, k: 2048 });
  const after = padRows(before);
  expect(names(after)).toEqual(["copyRowsApart", "copyRowsApart", "matmul"]);
  const bound = after.nodes.map(({ launch }) => launch.bindings.map(({ buffer }) => buffer));
  const [first, second] = after.nodes.map(({ launch }) => launch.bindings[1]);
  expect(bound).toEqual([
    [a.buffer, first?.buffer],
    [b.buffer, second?.buffer],
    [first?.buffer, second?.buffer, out.buffer],
  ]);
  expect([first?.length, second?.length]).toEqual([1024 * (2048 + 48), 2048 * (1024 + 48)]);
  expect(after.nodes.at(-1)?.launch.scalars).toMatchObject({ a_stride: 2096, b_stride: 1072 });
  expect(memoryMistakes(after, assignMemory(after, true))).toEqual([]);
});

test("the entries of a batch lie further apart too, and the product goes on rounding", () => {
  const a: Value = { ...transient(2 * 1024 * 1024), rounding: "float16" };
  const { before } = productOf({ m: 1024, n: 1024, k: 1024, batch: 2, a });
  const { nodes } = padRows(before);
  expect(nodes.map(({ launch }) => launch.bindings[0]?.rounding)).toEqual([
    undefined,
    undefined,
    "float16",
  ]);
  expect(nodes.at(-1)?.launch.scalars).toMatchObject({
    ...{ a_stride: 1072, a_batch: 1024 * 1072 },
    ...{ b_stride: 1072, b_batch: 0 },
  });
});

test("each factor is copied where that pays", () => {
  const square = { m: 1024, n: 1024, k: 1024 };
  const found = {
    square: stridesOf(square),
    transposed: stridesOf({ ...square, k: 256, transA: true }),
    "few rows of the result": stridesOf({ ...square, m: 256 }),
    "few columns of the result": stridesOf({ ...square, n: 512, transB: true }),
    "rows of 2 KiB": stridesOf({ ...square, dtype: "float16" }),
    "rows of 4 KiB in 16 bits": stridesOf({ m: 1024, n: 1024, k: 2048, dtype: "float16" }),
    "other rows": stridesOf({ m: 1024, n: 1056, k: 1056 }),
    "little to multiply": stridesOf({ ...square, k: 128, transA: true }),
    "more than every device binds": stridesOf({ m: 32_768, n: 1024, k: 1024 }),
  };
  expect(found).toEqual({
    square: [2, 1072, 1072],
    transposed: [2, 1072, 1072],
    "few rows of the result": [1, 1072, 1024],
    "few columns of the result": [1, 1024, 1072],
    "rows of 2 KiB": [0, 1024, 1024],
    "rows of 4 KiB in 16 bits": [1, 2144, 1024],
    "other rows": [0, 1056, 1056],
    "little to multiply": [0, 1024, 1024],
    "more than every device binds": [1, 1024, 1072],
  });
});

/**
 * relu(x · w) and its gradients, whose products have every transposition, of which each copies another factor: those of few rows the
 * first one, or both where the rows are added up, and those of little depth the second one. And how many factors were copied.
 */
async function train(runtime: Runtime) {
  const variable = (rows: number, columns: number, period: number) => {
    const data = new Float32Array(rows * columns);
    for (let i = 0; i < data.length; i++) data[i] = Math.sin(i % period);
    return runtime.variable(data, [rows, columns], { requiresGrad: true });
  };
  const [x, w] = [variable(256, 1024, 997), variable(1024, 1024, 991)];
  const [tall, wide] = [variable(1024, 256, 983), variable(256, 1024, 977)];
  const results = await runtime.step(() => {
    const y = relu(x.matmul(w));
    const z = relu(tall.matmul(wide));
    return [y, ...grad(y.sum(), [x, w]), z, ...grad(z.sum(), [tall])] as Tensor[];
  });
  const launches = runtime.lastPlan?.launches ?? [];
  return {
    results: await Promise.all(results.map((tensor) => tensor.toArray())),
    copies: launches.filter(({ launch }) => launch.kernel.name === "copyRowsApart").length,
  };
}

test("only CPUs copy, and no bit of a result changes", async () => {
  const device = await requestTestDevice();
  const spread = await train(gpuRuntime(device));
  const tight = await train(gpuRuntime(device, { passes: without("padRows") }));
  const isSoftware = device.capabilities.hardware.class === "software";
  expect([spread.copies, tight.copies]).toEqual([isSoftware ? 6 : 0, 0]);
  const wrong = spread.results.map((values, r) =>
    values.findIndex((value, i) => !Object.is(value, tight.results[r]?.[i])),
  );
  expect(wrong).toEqual([-1, -1, -1, -1, -1]);
  const quarter = 2 ** 18;
  expect(spread.results.map(({ length }) => length)).toEqual(
    [1, 1, 4, 4, 1].map((quarters) => quarters * quarter),
  );
});

const without = (pass: PassName): PassName[] => allPasses.filter((name) => name !== pass);
