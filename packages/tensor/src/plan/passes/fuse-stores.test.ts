import type { Launch } from "@halfstep/device";
import {
  add,
  elementwise,
  fromInteger,
  gather,
  matmul,
  mul,
  norm,
  relu,
  type ShapedBinding,
  softmax,
  stridedCopy,
} from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import { graph, names, opaque, resident, transient } from "../../../test/graphs.js";
import { Storage } from "../../record/storage.js";
import type { PlanGraph } from "../graph.js";
import { fuseEpilogues } from "./fuse-epilogues.js";

// fuse-epilogues.test.ts tests epilogues of products.

type Value = ShapedBinding<Storage>;
const [rows, columns] = [4, 4];
const size = rows * columns;

const shaped = (value: Value, ...shape: number[]): Value => ({ ...value, shape });
const value = (): Value => shaped(transient(size), rows, columns);
const parameter = (): Value => shaped(resident(size), rows, columns);
const softmaxOf = (input: Value, out: Value): Launch<Storage> =>
  softmax({ input, out }, { rows, columns });

const launched = (
  launch: (target: {
    allocate(bytes: number): Storage;
    launch(launch: Launch<Storage>): void;
  }) => void,
): Launch<Storage>[] => {
  const launches: Launch<Storage>[] = [];
  launch({ allocate: (bytes) => new Storage({}, bytes), launch: (l) => launches.push(l) });
  return launches;
};

const fusedNames = (launches: Launch<Storage>[], ...kept: Value[]): readonly string[] =>
  names(fuseEpilogues(graph(launches, { kept: kept.map(({ buffer }) => buffer) })));

describe("what alone reads a result that is stored by quads becomes a part of its launch", () => {
  test("with operands of any shape", () => {
    const [x, y, z, out] = [parameter(), value(), value(), value()];
    const [pair, column] = [shaped(resident(2), 2), shaped(resident(rows), rows, 1)];
    const halves = (of: Value): Value => shaped(of, size / 2, 2);
    const launches = [
      softmaxOf(x, y),
      elementwise(add, [halves(y), pair], halves(z)),
      softmaxOf(z, value()),
    ];
    expect(fusedNames(launches)).toEqual(["softmax+add", "softmax"]);
    const fused = fuseEpilogues(
      graph([softmaxOf(x, y), elementwise(mul, [y, column], out)], { kept: [out.buffer] }),
    );
    const [{ launch }] = fused.nodes as [PlanGraph["nodes"][number]];
    expect(launch.kernel.name).toBe("softmax+mul");
    expect(launch.bindings.map(({ buffer }) => buffer)).toEqual(
      [x, column, out].map(({ buffer }) => buffer),
    );
    expect(launch.scalars).toMatchObject({ rows, columns, woven_elements: size, woven_one: 1 });
  });

  test("the nearer of two, and a product before others", () => {
    const [a, b, y, z, out] = [parameter(), parameter(), value(), value(), value()];
    const sum = elementwise(add, [y, z], out);
    const fused = fuseEpilogues(
      graph([softmaxOf(a, y), softmaxOf(b, z), sum], { kept: [out.buffer] }),
    );
    expect(names(fused)).toEqual(["softmax", "softmax+add"]);
    expect(fused.nodes[0]?.launch.bindings[0]?.buffer).toBe(a.buffer);
    const product = launched((target) =>
      matmul(target, { a, b, out: y }, { m: rows, n: columns, k: columns }),
    );
    expect(fusedNames([...product, softmaxOf(b, z), sum], out)).toEqual(["softmax", "matmul+add"]);
  });

  test("but for integers, which it would take for floats", () => {
    const index = resident(1, "uint32");
    const labels = resident(size, "uint32");
    const [y, out] = [transient(size, "uint32"), transient(size)];
    const launches = [
      gather(
        { input: labels, index, out: y },
        { outer: 1, size: 1, inner: size, count: 1, indexing: "rows" },
      ),
      elementwise(fromInteger, [y], out),
    ];
    expect(fusedNames(launches, out)).toEqual(["gather", "fromInteger"]);
  });
});

test("what else a launch writes has to be there for those who read it", () => {
  const [input, out, z, other] = [parameter(), value(), value(), transient(rows)];
  const [mean, rstd] = [transient(rows), transient(rows)];
  const [statistics] = launched((target) =>
    norm(
      target,
      { input, mean, rstd, out },
      { batch: rows, pixels: 1, groups: 1, width: columns, eps: 1e-5 },
    ),
  );
  if (!statistics) throw new TypeError("no norm");
  const last = elementwise(relu, [out], z);
  const reader = opaque([mean], [other]);
  expect(fusedNames([statistics, reader, last], z, other)).toEqual(["norm", "opaque", "relu"]);
  expect(fusedNames([statistics, last, reader], z, other)).toEqual(["norm+relu", "opaque"]);
});

test("a launch does not wait for its reader with more than its result where memory is short", () => {
  const [big, small, out] = [transient(4096), value(), value()];
  const launches = (length: number): Launch<Storage>[] => {
    const [large, t] = [transient(length), value()];
    return [
      opaque([], [big]),
      stridedCopy({ input: big, out: small }, { dimensions: [{ size, stride: 2 }] }),
      opaque([], [large]),
      opaque([large], [t]),
      elementwise(add, [small, t], out),
    ];
  };
  const apart = ["opaque", "stridedCopy", "opaque", "opaque", "add"];
  expect(fusedNames(launches(8192), out)).toEqual(apart);
  // The peak is elsewhere.
  const before = transient(16_384);
  const fuller = [opaque([], [before]), opaque([before], [big]), ...launches(8192).slice(1)];
  expect(fusedNames(fuller, out)).toEqual([
    ...["opaque", "opaque", "opaque", "opaque"],
    "stridedCopy+add",
  ]);
});
