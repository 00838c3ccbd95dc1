import type { Binding, DType } from "@halfstep/device";
import {
  concatenate,
  elementwise,
  identity,
  type ShapedBinding,
  stridedCopy,
} from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  graph,
  inPlace,
  kernelOf,
  names,
  opaque,
  resident,
  storageOf,
  transient,
} from "../../../test/graphs.js";
import type { Storage } from "../../record/storage.js";
import { foldCasts } from "./fold-casts.js";

const cast = (from: ShapedBinding<Storage>, to: ShapedBinding<Storage>) =>
  elementwise(identity, [from], to);
const part = (whole: ShapedBinding<Storage>, offset: number, length: number): Binding<Storage> => {
  const { buffer, dtype } = whole;
  return { buffer, offset, length, dtype };
};

describe("into the producer", () => {
  test.each<[DType, DType, string]>([
    ["float32", "float16", "float16"],
    ["float32", "bfloat16", "bfloat16"],
    ["float16", "float32", "float32 through float16"],
    ["float16", "bfloat16", "bfloat16 through float16"],
  ])("a result of %s that is cast to %s is stored as %s", (from, to, stored) => {
    const [x, y, z] = [transient(8, from), transient(8, to), transient()];
    const folded = foldCasts(graph([opaque([], [x]), cast(x, y), opaque([y], [z])]));
    expect(names(folded)).toEqual(["opaque", "opaque"]);
    expect(storageOf(folded, 0, 0)).toBe(stored);
    expect(storageOf(folded, 1, 0)).toBe(to);
  });

  test("a copy into a variable becomes the producer's own write, which other readers follow", () => {
    const [x, w, z] = [transient(), resident(), transient()];
    const folded = foldCasts(
      graph([opaque([], [x]), opaque([x], [z]), cast(x, w), opaque([x], [z])]),
    );
    expect(names(folded)).toEqual(["opaque", "opaque", "opaque"]);
    const buffers = folded.nodes.map(({ launch }) => launch.bindings[0]?.buffer);
    expect(buffers).toEqual([w.buffer, w.buffer, w.buffer]);
  });

  test("a chain that would round twice in one store stays", () => {
    const half = transient(8, "float16");
    const brain = transient(8, "bfloat16");
    const [x, y, z] = [transient(), transient(), transient()];
    const launches = [
      opaque([], [x]),
      cast(x, half),
      cast(half, brain),
      cast(brain, y),
      opaque([y], [z], { dtypes: ["float32"] }),
    ];
    const folded = foldCasts(graph(launches));
    expect(names(folded)).toEqual(["opaque", "identity", "opaque"]);
    expect(storageOf(folded, 0, 0)).toBe("bfloat16 through float16");
    expect(storageOf(folded, 1, 1)).toBe("float32");
  });

  test("a kernel that cannot store halves keeps its cast", () => {
    const [x, h, z] = [transient(), transient(8, "float16"), transient()];
    const narrow = (options: { unit?: 1; dtypes?: readonly DType[] }): string[] =>
      names(
        foldCasts(
          graph([opaque([], [x], options), cast(x, h), opaque([h], [z], { dtypes: ["float16"] })]),
        ),
      );
    expect(narrow({ unit: 1 })).toEqual(["opaque", "identity", "opaque"]);
    expect(narrow({ dtypes: ["float32"] })).toEqual(["opaque", "identity", "opaque"]);
    expect(narrow({})).toEqual(["opaque", "opaque"]);
  });

  test("a result that is kept, read uncast, or written twice keeps its cast", () => {
    const [x, h, z] = [transient(), transient(8, "float16"), transient()];
    const halfReader = opaque([h], [z], { dtypes: ["float16"] });
    const launches = [opaque([], [x]), cast(x, h), halfReader];
    expect(foldCasts(graph(launches, { kept: [x.buffer] })).nodes).toHaveLength(3);
    expect(foldCasts(graph([...launches, opaque([x], [z])])).nodes).toHaveLength(4);
    expect(
      foldCasts(graph([opaque([], [x]), inPlace(x), cast(x, h), halfReader])).nodes,
    ).toHaveLength(4);
  });

  test("an assignment waits for earlier readers and writers of the variable", () => {
    const [x, y, w] = [transient(), transient(), resident()];
    const reader = graph([opaque([], [x]), opaque([w], [y]), cast(x, w)], { kept: [y.buffer] });
    expect(foldCasts(reader)).toEqual(reader);
    const writer = graph([opaque([], [x]), inPlace(w), cast(x, w)]);
    expect(foldCasts(writer)).toEqual(writer);
    const beside = part(resident(256), 256, 8);
    const apart = graph([opaque([], [x]), inPlace(beside), cast(x, w)]);
    expect(foldCasts(apart).nodes).toHaveLength(2);
  });

  test("a launch never reads and writes one buffer, nor writes a range twice", () => {
    const [x, y, w] = [transient(), transient(), resident()];
    const update = graph([opaque([w], [x]), cast(x, w)]);
    expect(foldCasts(update)).toEqual(update);
    const twice = foldCasts(graph([opaque([], [x, y]), cast(x, w), cast(y, w)]));
    expect(names(twice)).toEqual(["opaque", "identity"]);
    expect(twice.nodes[1]?.launch.bindings.map(({ buffer }) => buffer)).toEqual([
      y.buffer,
      w.buffer,
    ]);
  });

  test("readers do not follow to a place that changes before they read", () => {
    const [x, y, z] = [transient(), transient(), transient()];
    const launches = [opaque([], [x]), cast(x, y), inPlace(y), opaque([x, y], [z])];
    const before = graph(launches, { kept: [z.buffer] });
    expect(foldCasts(before)).toEqual(before);
  });
});

describe("into the consumers", () => {
  test("a resident weight is loaded through the rounding by everybody who wants it", () => {
    const [w, h] = [resident(), transient(8, "float16")];
    const results = [transient(), transient()];
    const folded = foldCasts(
      graph([cast(w, h), ...results.map((z) => opaque([h], [z]))], {
        kept: results.map(({ buffer }) => buffer),
      }),
    );
    expect(names(folded)).toEqual(["opaque", "opaque"]);
    expect([0, 1].map((n) => storageOf(folded, n, 0))).toEqual([
      "float32 through float16",
      "float32 through float16",
    ]);
    expect(folded.nodes.every(({ launch }) => launch.bindings[0]?.buffer === w.buffer)).toBe(true);
  });

  test("a widened half is loaded as it is, since widening rounds nothing", () => {
    const [h, x, z] = [resident(8, "float16"), transient(), transient()];
    const folded = foldCasts(graph([cast(h, x), opaque([x], [z])], { kept: [z.buffer] }));
    expect(storageOf(folded, 0, 0)).toBe("float16");
  });

  test("not past a write of what is cast", () => {
    const [w, h, z] = [resident(), transient(8, "float16"), transient()];
    const before = graph([cast(w, h), inPlace(w), opaque([h], [z])], { kept: [z.buffer] });
    expect(foldCasts(before)).toEqual(before);
    const t = transient();
    const scratch = graph([opaque([], [t]), inPlace(t), cast(t, h), inPlace(t), opaque([h], [z])], {
      kept: [z.buffer, t.buffer],
    });
    expect(foldCasts(scratch)).toEqual(scratch);
  });

  test("not where one of them cannot load it, reads a part, or changes it", () => {
    const [w, h, z] = [resident(64), transient(64, "float16"), transient(64)];
    for (const reader of [
      opaque([h], [z], { dtypes: ["float16"] }),
      opaque([part(h, 0, 32)], [z]),
      inPlace(h),
    ]) {
      const before = graph([cast(w, h), reader, opaque([h], [z])], { kept: [z.buffer] });
      expect(foldCasts(before)).toEqual(before);
    }
  });

  test("not where a consumer would read what it writes", () => {
    const [w, h] = [resident(), transient(8, "float16")];
    const before = graph([cast(w, h), opaque([h], [w])]);
    expect(foldCasts(before)).toEqual(before);
  });

  test("not where the cast itself is kept", () => {
    const [w, h, z] = [resident(), transient(8, "float16"), transient()];
    const before = graph([cast(w, h), opaque([h], [z])], { kept: [h.buffer, z.buffer] });
    expect(foldCasts(before)).toEqual(before);
  });
});

describe("pieces", () => {
  const slice = (x: ShapedBinding<Storage>, offset: number, out: ShapedBinding<Storage>) =>
    stridedCopy({ input: x, out }, { dimensions: [{ size: out.length, stride: 1 }], offset });
  const joined = (inputs: readonly ShapedBinding<Storage>[], out: ShapedBinding<Storage>) =>
    concatenate(
      { inputs, out },
      { outer: 1, sizes: inputs.map(({ length }) => length / 4), inner: 4 },
    );
  const placesOf = ({ nodes }: ReturnType<typeof foldCasts>) =>
    nodes.map(({ launch }) => launch.bindings.map(({ offset, length }) => [offset, length]));

  test("a slice in one piece is read where it lies, if it can be bound there", () => {
    const [x, z] = [transient(512, "float16"), transient()];
    const [near, far] = [transient(128, "float16"), transient(128, "float16")];
    const folded = foldCasts(
      graph([opaque([], [x]), slice(x, 128, near), slice(x, 4, far), opaque([near, far], [z])], {
        kept: [z.buffer],
      }),
    );
    expect(names(folded)).toEqual(["opaque", "stridedCopy", "opaque"]);
    expect(placesOf(folded)[2]?.slice(0, 2)).toEqual([
      [256, 128],
      [0, 128],
    ]);
    expect(folded.nodes[2]?.launch.bindings[0]?.buffer).toBe(x.buffer);
  });

  test("a slice of what changes before it is read stays a copy", () => {
    const [x, y, z] = [transient(512), transient(128), transient()];
    const before = graph(
      [opaque([], [x]), slice(x, 128, y), inPlace(part(x, 512, 128)), opaque([y], [z])],
      { kept: [z.buffer] },
    );
    expect(foldCasts(before)).toEqual(before);
  });

  test("results are stored where they are put one after the other, two of one launch as well", () => {
    const [a, b, c] = [transient(128), transient(128), transient(60)];
    const [all, z] = [transient(316), transient()];
    const folded = foldCasts(
      graph([opaque([], [a, c]), opaque([a], [b]), joined([a, b, c], all), opaque([all], [z])], {
        kept: [z.buffer],
      }),
    );
    // The second producer would read one part of a buffer of which it writes another.
    expect(names(folded)).toEqual(["opaque", "opaque", "concatenate", "opaque"]);
    const free = foldCasts(
      graph([opaque([], [a, c]), opaque([], [b]), joined([a, b, c], all), opaque([all], [z])], {
        kept: [z.buffer],
      }),
    );
    expect(placesOf(free)).toEqual([
      [
        [0, 128],
        [1024, 60],
      ],
      [[512, 128]],
      [
        [0, 316],
        [0, 8],
      ],
    ]);
    expect(
      new Set(
        free.nodes.slice(0, 2).flatMap(({ launch }) => launch.bindings.map(({ buffer }) => buffer)),
      ),
    ).toEqual(new Set([all.buffer]));
  });

  test("all stay apart where one is kept, comes twice, or would not begin where memory can be bound", () => {
    const [a, b, odd] = [transient(128), transient(128), transient(100)];
    const [all, twice, shifted] = [transient(256), transient(256), transient(228)];
    for (const [inputs, out, kept] of [
      [[a, b], all, [b.buffer]],
      [[a, a], twice, []],
      [[odd, b], shifted, []],
    ] as const) {
      const before = graph(
        [...new Set(inputs)].map((x) => opaque([], [x])).concat([joined(inputs, out)]),
        { kept: [out.buffer, ...kept] },
      );
      expect(foldCasts(before)).toEqual(before);
    }
  });
});

test("a launch of another kernel is no cast, whatever its name", () => {
  const [x, y] = [transient(), transient(8, "float16")];
  const kernel = kernelOf("identity", [
    { name: "x", access: "read" },
    { name: "y", access: "write" },
  ]);
  const before = graph([opaque([], [x]), { kernel, bindings: [x, y], scalars: {} }], {
    kept: [y.buffer],
  });
  expect(foldCasts(before)).toEqual(before);
});
