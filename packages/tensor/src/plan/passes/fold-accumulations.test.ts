import type { DType, Launch } from "@halfstep/device";
import {
  accumulate,
  add,
  elementwise,
  identity,
  matmul,
  matmulWithRowSums,
  type ShapedBinding,
} from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import { graph, inPlace, names, opaque, resident, transient } from "../../../test/graphs.js";
import { Storage } from "../../record/storage.js";
import type { PlanGraph } from "../graph.js";
import { foldAccumulations } from "./fold-accumulations.js";
import { fuseEpilogues } from "./fuse-epilogues.js";

type Value = ShapedBinding<Storage>;
const [m, n] = [8, 4];

const transposed = (value: Value): Value => ({ ...value, shape: [m, n] });
const made = (dtype: DType = "float32"): Value => transposed(transient(m * n, dtype));
const sumOf = (dtype: DType = "float32"): Value => transposed(resident(m * n, dtype));

function product(out: Value, { k = 4, rowSums }: { k?: number; rowSums?: Value } = {}) {
  const launches: Launch<Storage>[] = [];
  const a = resident(m * k);
  const target = {
    allocate: (bytes: number) => new Storage({}, bytes),
    launch: (launch: Launch<Storage>) => launches.push(launch),
  };
  const operands = { a, b: resident(k * n), out };
  if (rowSums) matmulWithRowSums(target, { ...operands, rowSums }, { m, n, k });
  else matmul(target, operands, { m, n, k, transA: true });
  return { a, launches };
}

const plus = (input: Value, out: Value): Launch<Storage> => accumulate({ input, out });

const stays = (before: PlanGraph): void => expect(foldAccumulations(before)).toEqual(before);

describe("the launch that makes a gradient adds it", () => {
  test("in its own place, with both launches' positions", () => {
    const [y, sum] = [made(), sumOf()];
    const launches = [...product(y).launches, opaque([], [transient()]), plus(y, sum)];
    const after = foldAccumulations(graph(launches));
    expect(names(after)).toEqual(["matmul+accumulate", "opaque"]);
    const [{ launch, recorded }] = after.nodes as [PlanGraph["nodes"][number]];
    expect(launch.bindings.at(-1)?.buffer).toBe(sum.buffer);
    expect(launch.kernel.bindings.at(-1)?.access).toBe("readwrite");
    expect(launch.scalars).toMatchObject({ m, n, k: 4, woven_one: 1 });
    expect(recorded).toEqual([0, 2]);
  });

  test("whether it adds up parts, has an epilogue, or is elementwise", () => {
    const [y, z, sum] = [made(), made(), sumOf()];
    const parts = graph([...product(y, { k: 4096 }).launches, plus(y, sum)]);
    expect(names(foldAccumulations(parts))).toEqual(["matmul", "sumParts+accumulate"]);
    const tied = [...product(y).launches, elementwise(add, [y, sumOf()], z), plus(z, sum)];
    expect(names(foldAccumulations(fuseEpilogues(graph(tied))))).toEqual(["matmul+add+accumulate"]);
    expect(names(foldAccumulations(graph(tied)))).toEqual(["matmul", "add+accumulate"]);
  });

  test("and both results of one launch, which may lie in one buffer", () => {
    const [y, rowSums, sum] = [made(), transient(m), resident(256)];
    const [ofProduct, ofRows] = [
      { ...sum, length: m * n },
      { ...sum, offset: 512, length: m },
    ];
    const { launches } = product(y, { rowSums });
    const after = foldAccumulations(
      graph([...launches, plus(y, ofProduct), plus(rowSums, ofRows)]),
    );
    expect(names(after)).toEqual(["matmul+accumulate"]);
    expect(after.nodes[0]?.launch.bindings.slice(2)).toEqual([ofRows, ofProduct]);
    expect(after.nodes[0]?.recorded).toEqual([0, 1, 2]);
  });

  test("rounded as it would have been stored, or loaded", () => {
    const variantOf = (y: Value, read: Value, sum: Value): string | undefined => {
      const after = foldAccumulations(graph([...product(y).launches, plus(read, sum)]));
      expect(names(after)).toEqual(["matmul+accumulate"]);
      return after.nodes[0]?.launch.kernel.variant.split(" ").at(-1);
    };
    const [y, half] = [made(), made("bfloat16")];
    expect(variantOf(y, y, sumOf())).toBe("out");
    expect(variantOf(half, half, sumOf())).toBe("bfloat16");
    expect(variantOf(half, half, sumOf("bfloat16"))).toBe("bfloat16");
    expect(variantOf(y, { ...y, rounding: "float16" }, sumOf())).toBe("float16");
    const rounded: Value = { ...made(), rounding: "float16" };
    expect(variantOf(rounded, { ...rounded, rounding: undefined } as never, sumOf())).toBe(
      "float16",
    );
  });
});

test("what is wanted by itself is stored, and added besides", () => {
  const [y, weight, sum] = [made(), sumOf(), sumOf()];
  const launches = [...product(y).launches, plus(y, sum)];
  const isBoth = (after: PlanGraph, out: Value): void => {
    const [{ launch }] = after.nodes as [PlanGraph["nodes"][number]];
    expect(launch.kernel.name).toBe("matmul+accumulate");
    expect(launch.bindings.slice(2).map(({ buffer }) => buffer)).toEqual([out.buffer, sum.buffer]);
    expect(launch.kernel.bindings.slice(2).map(({ access }) => access)).toEqual([
      ...["write", "readwrite"],
    ]);
  };
  isBoth(foldAccumulations(graph(launches, { kept: [y.buffer] })), y);
  isBoth(foldAccumulations(graph([...product(weight).launches, plus(weight, sum)])), weight);
  for (const place of [1, 2]) {
    const read = launches.toSpliced(place, 0, opaque([y], [transient()]));
    const after = foldAccumulations(graph(read));
    expect(names(after)).toEqual(["matmul+accumulate", "opaque"]);
    isBoth(after, y);
  }
});

test("two results of one launch may both be wanted", () => {
  const [y, rowSums] = [made(), transient(m)];
  const sums = [sumOf(), resident(m)] as const;
  const { launches } = product(y, { rowSums });
  const added = [plus(y, sums[0]), plus(rowSums, sums[1])];
  const after = foldAccumulations(
    graph([...launches, opaque([y, rowSums], [transient()]), ...added]),
  );
  expect(names(after)).toEqual(["matmul+accumulate", "opaque"]);
  expect(after.nodes[0]?.launch.bindings.slice(2).map(({ buffer }) => buffer)).toEqual(
    [rowSums, y, ...sums].map(({ buffer }) => buffer),
  );
});

describe("launches stay apart where", () => {
  test("a part of what is added is stored by somebody else", () => {
    const [y, sum] = [made(), sumOf()];
    const [whole] = product(y).launches as [Launch<Storage>];
    stays(graph([whole, opaque([], [y]), plus(y, sum)]));
    const long = transient(2 * m * n);
    stays(graph([...product(y).launches, plus({ ...y, ...long, length: m * n }, sum)]));
  });

  test("nobody makes it, or only afterwards", () => {
    const [y, sum] = [sumOf(), sumOf()];
    stays(graph([plus(y, sum)]));
    stays(graph([plus(y, sum), ...product(y).launches]));
  });

  test("the sum is looked at or changed in between, or read by who would add to it", () => {
    const [y, sum] = [made(), sumOf()];
    for (const use of [opaque([sum], [transient()]), opaque([], [sum]), inPlace(sum)])
      stays(graph([...product(y).launches, use, plus(y, sum)]));
    const { a, launches } = product(y);
    stays(graph([...launches, plus(y, { ...a, length: m * n })]));
    stays(graph([elementwise(identity, [sum], y), plus(y, sum)]));
  });

  test("the launch may store a unit more than once", () => {
    const [y, sum] = [made(), sumOf()];
    stays(graph([opaque([], [y]), plus(y, sum)]));
  });

  test("it was rounded to two formats", () => {
    const [y, sum] = [made("float16"), sumOf()];
    stays(graph([...product(y).launches, plus({ ...y, rounding: "bfloat16" }, sum)]));
  });
});
