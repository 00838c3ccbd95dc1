import type { DType, Launch, LaunchTarget } from "@halfstep/device";
import {
  add,
  elementwise,
  ge,
  matmul,
  matmulWithRowSums,
  mul,
  relu,
  type ShapedBinding,
  scale,
} from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import { graph, inPlace, names, opaque, resident, transient } from "../../../test/graphs.js";
import { Storage } from "../../record/storage.js";
import type { PlanGraph } from "../graph.js";
import { fuseElementwise } from "./fuse-elementwise.js";
import { fuseEpilogues } from "./fuse-epilogues.js";

type Value = ShapedBinding<Storage>;
const [m, n, k] = [2, 4, 4];

const shaped = (value: Value, ...shape: number[]): Value => ({ ...value, shape });
const operands = (): [Value, Value] => [resident(m * k), resident(k * n)];
const result = (dtype: DType = "float32"): Value => shaped(transient(m * n, dtype), m, n);

/** The launches of out = a · b; with an odd number of columns, or a large k, there are two. */
function product(a: Value, b: Value, out: Value, columns = n, depth = k): Launch<Storage>[] {
  return launchesOf((target) => matmul(target, { a, b, out }, { m, n: columns, k: depth }));
}

function launchesOf(record: (target: LaunchTarget<Storage>) => void): Launch<Storage>[] {
  const launches: Launch<Storage>[] = [];
  record({ allocate: (bytes) => new Storage({}, bytes), launch: (l) => launches.push(l) });
  return launches;
}

const stays = (before: PlanGraph): void => expect(fuseEpilogues(before)).toEqual(before);

describe("what alone reads a product becomes a part of it", () => {
  test("with its operands, its scalars and their sources", () => {
    const [[a, b], bias, y, z, out] = [operands(), resident(n), result(), result(), result()];
    const launches = [
      ...product(a, b, y),
      elementwise(scale, [y], z, [3]),
      elementwise(add, [z, shaped(bias, n)], out),
    ];
    const fused = fuseEpilogues(fuseElementwise(graph(launches, { kept: [out.buffer] })));
    expect(names(fused)).toEqual(["matmul+scale+add"]);
    const [{ launch, sources }] = fused.nodes as [PlanGraph["nodes"][number]];
    expect(launch.bindings.map(({ buffer }) => buffer)).toEqual(
      [a, b, bias, out].map(({ buffer }) => buffer),
    );
    expect(launch.scalars).toMatchObject({
      ...{ m, n, k, woven_c0_0: 3, woven_x1_size0: n, woven_one: 1 },
    });
    expect([...sources]).toEqual([["woven_c0_0", { launch: 1, name: "c0_0" }]]);
  });

  test("also where the product is added up from parts", () => {
    const [a, b] = [resident(m * k), resident(k * 3)];
    const y = shaped(transient(m * 3), m, 3);
    const z = shaped(transient(m * 3), m, 3);
    const fused = fuseEpilogues(
      graph([...product(a, b, y, 3), elementwise(relu, [y], z)], { kept: [z.buffer] }),
    );
    expect(names(fused)).toEqual(["matmul", "sumParts+relu"]);
  });

  test("and may use it twice", () => {
    const [[a, b], y, z] = [operands(), result(), result()];
    const fused = fuseEpilogues(
      graph([...product(a, b, y), elementwise(mul, [y, y], z)], { kept: [z.buffer] }),
    );
    expect(names(fused)).toEqual(["matmul+mul"]);
    expect(fused.nodes[0]?.launch.bindings).toHaveLength(3);
  });

  test("beside the sums of its rows, in whose place it stays while they are read", () => {
    for (const [depth, fused] of [
      [k, ["matmul+scale"]],
      [1024, ["matmul", "sumParts+scale"]],
    ] as const) {
      const [a, b] = [resident(m * depth), resident(n * depth)];
      const [y, z, rowSums, other] = [result(), result(), transient(m), transient(m)];
      const launches = launchesOf((target) =>
        matmulWithRowSums(target, { a, b, out: y, rowSums }, { m, n, k: depth }),
      );
      const reader = elementwise(scale, [y], z, [3]);
      const kept = [z.buffer, rowSums.buffer, other.buffer];
      expect(names(fuseEpilogues(graph([...launches, reader], { kept })))).toEqual(fused);
      stays(graph([...launches, opaque([rowSums], [other]), reader], { kept }));
    }
  });

  test("in the reader's place, where operands made in between are known", () => {
    const [[a, b], y, r, z] = [operands(), result(), result(), result()];
    const launches = [...product(a, b, y), opaque([a], [r]), elementwise(add, [y, r], z)];
    expect(names(fuseEpilogues(graph(launches, { kept: [z.buffer] })))).toEqual([
      "opaque",
      "matmul+add",
    ]);
  });
});

describe("the result rounds", () => {
  const variantOf = (y: Value, read: Value): string => {
    const [[a, b], z] = [operands(), result()];
    const fused = fuseEpilogues(
      graph([...product(a, b, y), elementwise(relu, [read], z)], { kept: [z.buffer] }),
    );
    expect(names(fused)).toEqual(["matmul+relu"]);
    return fused.nodes[0]?.launch.kernel.variant.split(";").at(-1) ?? "";
  };

  test("as it would have been stored, or loaded through a folded cast", () => {
    const [y, half] = [result(), result("float16")];
    expect(variantOf(y, y)).toBe("");
    expect(variantOf(half, half)).toBe("float16");
    expect(variantOf({ ...y, rounding: "bfloat16" }, y)).toBe("bfloat16");
    expect(variantOf(y, { ...y, rounding: "float16" })).toBe("float16");
  });

  test("once only: through two formats, the two stay apart", () => {
    const [[a, b], half, z] = [operands(), result("float16"), result()];
    const read: Value = { ...half, rounding: "bfloat16" };
    stays(graph([...product(a, b, half), elementwise(relu, [read], z)], { kept: [z.buffer] }));
  });
});

describe("launches stay apart", () => {
  test("where the result has two readers, is kept, or is resident", () => {
    const [[a, b], y, z, other] = [operands(), result(), result(), result()];
    const launches = [...product(a, b, y), elementwise(relu, [y], z)];
    stays(graph(launches, { kept: [y.buffer, z.buffer] }));
    stays(graph([...launches, opaque([y], [other])], { kept: [z.buffer, other.buffer] }));
    const w = shaped(resident(m * n), m, n);
    stays(graph([...product(a, b, w), elementwise(relu, [w], z)], { kept: [z.buffer] }));
  });

  test("where a factor changes, or the epilogue writes one", () => {
    const [[a, b], y, z] = [operands(), result(), result()];
    stays(
      graph([...product(a, b, y), inPlace(a), elementwise(relu, [y], z)], { kept: [z.buffer] }),
    );
    stays(graph([...product(a, b, y), elementwise(relu, [y], shaped(a, m, n))]));
  });

  test("where the reader is not elementwise, or belongs to the backward pass", () => {
    const [[a, b], y, z] = [operands(), result(), result()];
    stays(graph([...product(a, b, y), opaque([y], [z])], { kept: [z.buffer] }));
    stays(
      graph([...product(a, b, y), elementwise(relu, [y], z)], { kept: [z.buffer], backward: 1 }),
    );
  });

  test("where the result is broadcast, or a row is not the product's", () => {
    const [[a, b], y, big] = [operands(), result(), shaped(transient(2 * m * n), 2, m, n)];
    const wide = shaped(resident(2 * m * n), 2, m, n);
    stays(graph([...product(a, b, y), elementwise(add, [wide, y], big)], { kept: [big.buffer] }));
    const z = shaped(transient(m * n), 4, 2);
    const short = shaped(resident(2), 2);
    stays(
      graph([...product(a, b, y), elementwise(add, [shaped(y, 4, 2), short], z)], {
        kept: [z.buffer],
      }),
    );
  });

  test("where a mask is made, or operands are too many", () => {
    const [[a, b], y, mask] = [operands(), result(), result("uint32")];
    stays(graph([...product(a, b, y), elementwise(ge, [y, y], mask)], { kept: [mask.buffer] }));
    const terms = Array.from({ length: 6 }, () => shaped(resident(m * n), m, n));
    const sums = terms.map(() => result());
    const launches = [
      ...product(a, b, y),
      ...terms.map((term, i) => elementwise(add, [sums[i - 1] ?? y, term], sums[i] as Value)),
    ];
    const kept = [sums.at(-1)?.buffer as Storage];
    const fused = fuseElementwise(graph(launches, { kept }));
    expect(names(fused)).toEqual(["matmul", "add+add+add+add+add+add"]);
    stays(fused);
  });
});
