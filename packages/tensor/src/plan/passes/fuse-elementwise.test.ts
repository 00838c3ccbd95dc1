import {
  add,
  addScalar,
  dropout,
  elementwise,
  mul,
  type ShapedBinding,
  scale,
} from "@halfstep/kernels";
import { type ElementwiseKernel, isElementwise } from "@halfstep/kernels/planner";
import { describe, expect, test } from "vitest";
import { graph, inPlace, names, opaque, resident, transient } from "../../../test/graphs.js";
import type { Storage } from "../../record/storage.js";
import type { PlanGraph, PlanNode } from "../graph.js";
import { fuseElementwise } from "./fuse-elementwise.js";

type Value = ShapedBinding<Storage>;

const sum = (a: Value, b: Value, out: Value) => elementwise(add, [a, b], out);
const times = (a: Value, c: number, out: Value) => elementwise(scale, [a], out, [c]);
const plus = (a: Value, c: number, out: Value) => elementwise(addScalar, [a], out, [c]);
const shaped = (value: Value, ...shape: number[]): Value => ({ ...value, shape });
const only = ({ nodes }: PlanGraph): PlanNode => {
  expect(nodes).toHaveLength(1);
  return nodes[0] as PlanNode;
};
const programOf = (node: PlanNode): ElementwiseKernel["elementwise"] => {
  if (!isElementwise(node.launch.kernel)) throw new TypeError("not elementwise");
  return node.launch.kernel.elementwise;
};

describe("a chain becomes one launch", () => {
  test("whose scalars keep their values and their sources", () => {
    const [x, a, b, y] = [resident(), transient(), transient(), transient()];
    const launches = [times(x, 2, a), plus(a, 3, b), times(b, 5, y)];
    const fused = only(fuseElementwise(graph(launches, { kept: [y.buffer] })));
    expect(fused.launch.kernel.name).toBe("scale+addScalar+scale");
    expect(fused.launch.scalars).toMatchObject({ c0_0: 2, c1_0: 3, c2_0: 5, count: 8 });
    expect([...fused.sources]).toEqual([
      ["c0_0", { launch: 0, name: "c0_0" }],
      ["c1_0", { launch: 1, name: "c0_0" }],
      ["c2_0", { launch: 2, name: "c0_0" }],
    ]);
    expect(fused.launch.bindings.map(({ buffer }) => buffer)).toEqual([x.buffer, y.buffer]);
  });

  test("and a value that is used twice is computed once", () => {
    const [x, a, y] = [resident(), transient(), transient()];
    const fused = only(
      fuseElementwise(graph([times(x, 2, a), sum(a, a, y)], { kept: [y.buffer] })),
    );
    expect(programOf(fused).steps.map(({ operands }) => operands)).toEqual([[0], [1, 1]]);
  });

  test("and an operand of both is loaded once", () => {
    const [x, a, y] = [resident(), transient(), transient()];
    const fused = only(
      fuseElementwise(graph([times(x, 2, a), sum(a, x, y)], { kept: [y.buffer] })),
    );
    expect(fused.launch.bindings).toHaveLength(2);
  });

  test("whose operands keep the way in which they are broadcast", () => {
    const [wide, row, column] = [resident(8), resident(4), resident(2)];
    const [product, y] = [shaped(transient(8), 2, 4), shaped(transient(8), 2, 4)];
    const launches = [
      elementwise(mul, [shaped(wide, 2, 4), shaped(row, 4)], product),
      elementwise(add, [product, shaped(column, 2, 1)], y),
    ];
    const fused = only(fuseElementwise(graph(launches, { kept: [y.buffer] })));
    expect(programOf(fused).inputs).toEqual(["same", "row", "strided2"]);
    const { scalars } = fused.launch;
    expect(scalars).toMatchObject({ x1_size0: 4, x2_size0: 2, x2_size1: 4 });
    expect(scalars).toMatchObject({ x2_stride0: 1, x2_stride1: 0 });
  });

  test("which loads the same memory apart where it is broadcast in two ways", () => {
    const square = resident(4);
    const [a, y] = [shaped(transient(8), 2, 4), shaped(transient(8), 2, 4)];
    const wide = shaped(resident(8), 2, 4);
    const launches = [
      elementwise(mul, [wide, shaped(square, 4)], a),
      elementwise(add, [a, { ...shaped(square, 2, 1), length: 2 }], y),
    ];
    const fused = only(fuseElementwise(graph(launches, { kept: [y.buffer] })));
    expect(fused.launch.bindings.map(({ buffer }) => buffer)).toEqual([
      wide.buffer,
      square.buffer,
      square.buffer,
      y.buffer,
    ]);
  });

  test("also where a single number is broadcast: all that it is made of is read as one", () => {
    const [loss, scale, a, b] = [resident(1), resident(1), transient(1), transient(1)];
    const [big, y] = [resident(8), transient(8)];
    const launches = [
      elementwise(mul, [loss, scale], a),
      times(a, 3, b),
      sum(big, shaped(b, 1), y),
    ];
    const fused = only(fuseElementwise(graph(launches, { kept: [y.buffer] })));
    expect(fused.launch.kernel.name).toBe("mul+scale+add");
    expect(programOf(fused).inputs).toEqual(["scalar", "scalar", "same"]);
    expect(fused.launch.scalars).toMatchObject({ count: 8, c1_0: 3 });
    expect(fused.sources.get("c1_0")).toEqual({ launch: 1, name: "c0_0" });
  });

  test("that stays within eight bindings", () => {
    const inputs = Array.from({ length: 12 }, () => resident());
    const sums = inputs.slice(1).map(() => transient());
    const launches = sums.map((out, i) =>
      sum(i === 0 ? (inputs[0] as Value) : (sums[i - 1] as Value), inputs[i + 1] as Value, out),
    );
    const fused = fuseElementwise(graph(launches, { kept: [sums.at(-1)?.buffer as Storage] }));
    expect(fused.nodes.map(({ launch }) => launch.bindings.length)).toEqual([8, 7]);
  });
});

describe("dropout", () => {
  const drop = (a: Value, out: Value, block: number) =>
    dropout({ input: a, out }, { seed: 2 ** 32 + 5, block, stream: 3 }, 0.25);

  test("becomes a part of its neighbours, and each draws its own numbers", () => {
    const [x, r, y] = [resident(), resident(), transient()];
    const [a, b, c] = [transient(), transient(), transient()];
    const launches = [times(x, 2, a), drop(a, b, 40), sum(b, r, c), drop(c, y, 50)];
    const before = graph(launches, { kept: [y.buffer] });
    const { launch, sources } = only(fuseElementwise(before));
    expect(launch.kernel.name).toBe("scale+dropout+add+dropout");
    expect(launch.bindings.map(({ buffer }) => buffer)).toEqual([x.buffer, r.buffer, y.buffer]);
    expect(launch.scalars).toMatchObject({ c0_0: 2, c1_1: 0.75 * 2 ** 24, c1_block0: 40 });
    expect(launch.scalars).toMatchObject({ c3_block0: 50, c3_seed0: 5, c3_seed1: 1 });
    expect(sources.get("c1_block0")).toEqual({ launch: 1, name: "c0_block0" });
    expect(sources.get("c3_block0")).toEqual({ launch: 3, name: "c0_block0" });
    const runtime = launch.kernel.scalars.filter((s) => s.runtime && s.name !== "one");
    expect([...sources.keys()].sort()).toEqual(runtime.map(({ name }) => name).sort());
  });
});

describe("rounding between steps", () => {
  const half = (rounding?: "bfloat16"): Value => {
    const value = transient(8, "float16");
    return rounding ? { ...value, rounding } : value;
  };

  test("stays where the value was stored in 16 bits", () => {
    const [x, h, y] = [resident(), half(), transient()];
    const fused = only(
      fuseElementwise(graph([times(x, 2, h), plus(h, 1, y)], { kept: [y.buffer] })),
    );
    expect(programOf(fused).steps.map(({ rounding }) => rounding)).toEqual(["float16", undefined]);
  });

  test("stays where a folded cast rounds a load", () => {
    const [x, a, y] = [resident(), transient(), transient()];
    const rounded: Value = { ...a, rounding: "bfloat16" };
    const fused = only(
      fuseElementwise(graph([times(x, 2, a), plus(rounded, 1, y)], { kept: [y.buffer] })),
    );
    expect(programOf(fused).steps[0]?.rounding).toBe("bfloat16");
  });

  test("by two formats, or of one operand and not of the other, keeps launches apart", () => {
    const [x, a, h, y] = [resident(), transient(), half("bfloat16"), transient()];
    const two = graph([times(x, 2, h), plus(half(), 1, y)], { kept: [y.buffer] });
    expect(fuseElementwise(two)).toEqual(two);
    const brain = graph([times(x, 2, h), plus(h, 1, y)], { kept: [y.buffer] });
    expect(fuseElementwise(brain)).toEqual(brain);
    const mixed = graph([times(x, 2, a), sum(a, { ...a, rounding: "float16" }, y)], {
      kept: [y.buffer],
    });
    expect(fuseElementwise(mixed)).toEqual(mixed);
  });
});

describe("launches stay apart", () => {
  const stays = (before: PlanGraph): void => expect(fuseElementwise(before)).toEqual(before);

  test("where the value has two readers, is kept, or is resident", () => {
    const [x, a, y, z] = [resident(), transient(), transient(), transient()];
    stays(graph([times(x, 2, a), plus(a, 1, y), plus(a, 2, z)], { kept: [y.buffer, z.buffer] }));
    stays(graph([times(x, 2, a), plus(a, 1, y)], { kept: [a.buffer, y.buffer] }));
    const w = resident();
    stays(graph([times(x, 2, w), plus(w, 1, y)], { kept: [y.buffer] }));
  });

  test("where an operand changes before the reader", () => {
    const [w, a, y, t] = [resident(), transient(), transient(), transient()];
    stays(graph([times(w, 2, a), inPlace(w), plus(a, 1, y)], { kept: [y.buffer] }));
    stays(
      graph([opaque([], [t]), times(t, 2, a), inPlace(t), plus(a, 1, y)], { kept: [y.buffer] }),
    );
  });

  test("where the reader writes an operand of the first", () => {
    const [w, a] = [resident(), transient()];
    stays(graph([times(w, 2, a), plus(a, 1, w)]));
  });

  test("where the reader broadcasts the value", () => {
    const [x, a, big, y] = [resident(4), transient(4), resident(8), transient(8)];
    stays(
      graph(
        [times(x, 2, a), elementwise(add, [shaped(big, 2, 4), shaped(a, 4)], shaped(y, 2, 4))],
        { kept: [y.buffer] },
      ),
    );
  });

  test("where a single number is drawn", () => {
    const [x, a, y] = [resident(1), transient(1), transient(8)];
    const source = { seed: 1, block: 2, stream: 3 };
    const before = graph(
      [dropout({ input: x, out: a }, source, 0.5), sum(resident(8), shaped(a, 1), y)],
      { kept: [y.buffer] },
    );
    expect(fuseElementwise(before)).toEqual(before);
  });

  test("where one of them is not elementwise", () => {
    const [x, a, y] = [resident(), transient(), transient()];
    stays(graph([opaque([x], [a]), plus(a, 1, y)], { kept: [y.buffer] }));
    stays(graph([times(x, 2, a), opaque([a], [y])], { kept: [y.buffer] }));
  });
});

test("what lies between two launches does not keep them apart", () => {
  const [x, a, b, y] = [resident(), transient(), transient(), transient()];
  const fused = fuseElementwise(
    graph([times(x, 2, a), opaque([x], [b]), sum(a, b, y)], { kept: [y.buffer] }),
  );
  expect(names(fused)).toEqual(["opaque", "scale+add"]);
});
