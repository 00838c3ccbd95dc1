import type { Binding, DType, Launch } from "@halfstep/device";
import { accumulate, matmul } from "@halfstep/kernels";
import { checkFinite } from "@halfstep/kernels/amp";
import { accumulating, canAccumulate } from "@halfstep/kernels/planner";
import { describe, expect, test } from "vitest";
import { graph, inPlace, memoryMistakes, names, opaque, resident } from "../../../test/graphs.js";
import { Storage } from "../../record/storage.js";
import { assignMemory } from "../assign-memory.js";
import { fuseFiniteChecks } from "./fuse-finite-checks.js";

type Value = Binding<Storage>;

/** Elements from the beginning of one part to that of the next. */
const step = 128;
const size = 8;

/** A product that fills a part of a buffer with 8 × 8 numbers. */
function product(out: Value): Launch<Storage> {
  const launches: Launch<Storage>[] = [];
  matmul(
    { allocate: (bytes) => new Storage({}, bytes), launch: (launch) => launches.push(launch) },
    { a: resident(size * size), b: resident(size * size), out },
    { m: size, n: size, k: size },
  );
  return launches[0] as Launch<Storage>;
}

/** A buffer of so many parts of 8 × 8 numbers, with zeros between them where they are packed. */
function packed(count: number, dtype: DType = "float32") {
  const whole = resident((count - 1) * step + size * size, dtype);
  whole.buffer.partStep = step * 4;
  const parts = Array.from(
    { length: count },
    (_, i): Value => ({
      ...whole,
      offset: i * step * 4,
      length: size * size,
    }),
  );
  return { whole, parts: parts as [Value, ...Value[]], foundInf: resident(1, "uint32") };
}

const search = (x: Value, { buffer }: Value): Launch<Storage> =>
  checkFinite({ x, foundInf: buffer });

/** The names of the launches after the pass, for which memory can be planned. */
function planned(launches: readonly Launch<Storage>[]): string[] {
  const after = fuseFiniteChecks(graph(launches));
  expect(memoryMistakes(after, assignMemory(after, true))).toEqual([]);
  return names(after);
}

test("all who store what is searched look at it", () => {
  const { whole, parts, foundInf } = packed(3);
  const before = graph([
    ...parts.map(product),
    search(whole, foundInf),
    opaque([foundInf], [resident()]),
  ]);
  const after = fuseFiniteChecks(before);
  expect(names(after)).toEqual([...parts.map(() => "matmul+check-finite"), "opaque"]);
  const flags = after.nodes.slice(0, 3).map(({ launch }) => launch.bindings.at(-1));
  expect(flags).toEqual(parts.map(() => ({ ...foundInf, length: 2, shape: undefined })));
  expect(after.nodes[0]?.recorded).toEqual([0, 3]);
});

test("the last store of a part is checked, a sum that it adds to included", () => {
  const { whole, parts, foundInf } = packed(2);
  const [first, second] = parts.map(product) as [Launch<Storage>, Launch<Storage>];
  const { kernel } = second;
  if (!canAccumulate(kernel, 2)) throw new TypeError("products can add to a sum");
  const adding = accumulating({ ...second, kernel }, 2, parts[1] as Value);
  const plus = accumulate({ input: resident(size * size), out: parts[0] });
  expect(planned([first, second, plus, adding, search(whole, foundInf)])).toEqual([
    ...["matmul", "matmul", "accumulate+check-finite", "matmul+accumulate+check-finite"],
  ]);
});

test("what is not packed has nothing between its parts", () => {
  const { whole, parts, foundInf } = packed(2);
  whole.buffer.partStep = undefined;
  expect(planned([...parts.map(product), search(whole, foundInf)]).at(-1)).toBe("check-finite");
  expect(planned([product(parts[0]), search(parts[0], foundInf)])).toEqual(["matmul+check-finite"]);
});

describe("a search stays where", () => {
  const stays = (launches: readonly Launch<Storage>[]): void =>
    expect(planned(launches)).toEqual(launches.map(({ kernel }) => kernel.name));

  test("a part was stored before, and may be infinite since then", () => {
    for (const missing of [0, 1, 2]) {
      const { whole, parts, foundInf } = packed(3);
      stays([...parts.filter((_, i) => i !== missing).map(product), search(whole, foundInf)]);
    }
  });

  test("a part is stored by somebody who cannot look, in place, or twice in part", () => {
    for (const other of [(x: Value) => opaque([], [x]), inPlace]) {
      const { whole, parts, foundInf } = packed(2);
      stays([product(parts[0]), other(parts[1] as Value), search(whole, foundInf)]);
    }
    const { parts, foundInf } = packed(1);
    stays([product(parts[0]), inPlace(parts[0]), search(parts[0], foundInf)]);
    const half = { ...parts[0], length: (size * size) / 2 };
    stays([product(parts[0]), opaque([], [half]), search(parts[0], foundInf)]);
  });

  test("16 bits are stored", () => {
    const { parts, foundInf } = packed(1, "float16");
    stays([product(parts[0]), search(parts[0], foundInf)]);
  });

  test("the flag is looked at, or cleared, after the first store", () => {
    for (const use of [(flag: Value) => opaque([flag], [resident()]), inPlace]) {
      const { whole, parts, foundInf } = packed(2);
      const [first, second] = parts.map(product) as [Launch<Storage>, Launch<Storage>];
      stays([first, use(foundInf), second, search(whole, foundInf)]);
    }
  });

  test("it sums squares as well", () => {
    const { parts, foundInf } = packed(1);
    const sum = { state: resident(2).buffer, squares: resident(4096).buffer };
    stays([product(parts[0]), checkFinite({ x: parts[0], foundInf: foundInf.buffer }, sum)]);
  });
});

test("two searches of a part share their stores no more than once", () => {
  const { parts, foundInf } = packed(1);
  const again = resident(1, "uint32");
  expect(planned([product(parts[0]), search(parts[0], foundInf), search(parts[0], again)])).toEqual(
    ["matmul+check-finite", "check-finite"],
  );
});
