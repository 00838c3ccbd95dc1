import type { HalfDType } from "@halfstep/device";
import { add, elementwise, type ShapedBinding } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import {
  graph,
  inPlace,
  input,
  memoryMistakes,
  opaque,
  resident,
  storageOf,
  transient,
} from "../../../test/graphs.js";
import type { Storage } from "../../record/storage.js";
import { assignMemory } from "../assign-memory.js";
import { narrowStorage } from "./narrow-storage.js";

type Value = ShapedBinding<Storage>;

const through = (value: Value, rounding: HalfDType): Value => ({ ...value, rounding });
const from = (offset: number, value: Value): Value => ({ ...value, offset });

test("a value that was rounded is stored in 16 bits, and its readers widen it", () => {
  const [x, y, z] = [transient(), resident(), transient(8, "float16")];
  const launches = [
    opaque([], [through(x, "float16")]),
    elementwise(add, [x, y], z),
    opaque([through(x, "float16")], [z]),
    opaque([through(x, "bfloat16")], [z]),
  ];
  const narrowed = narrowStorage(graph(launches, { kept: [z.buffer] }));
  const stored = [
    [0, 0],
    [1, 0],
    [2, 0],
    [3, 0],
  ].map(([node, operand]) => storageOf(narrowed, node as number, operand as number));
  expect(stored).toEqual(["float16", "float16", "float16", "float16 through bfloat16"]);
  expect(memoryMistakes(narrowed, assignMemory(narrowed, true))).toEqual([]);
  const [first] = narrowed.nodes;
  expect(first?.launch.bindings[0]?.buffer.byteLength).toBe(16);
});

describe("it stays as it is", () => {
  const x = transient();
  const half = through(x, "float16");
  const cases: [string, Parameters<typeof graph>][] = [
    ["where it is kept", [[opaque([], [half])], { kept: [x.buffer] }]],
    ["where it is written without being rounded too", [[opaque([], [half]), opaque([], [x])]]],
    ["where it is changed in place", [[opaque([], [half]), inPlace(x)]]],
    [
      "where it is rounded to two formats",
      [[opaque([], [half]), opaque([], [through(x, "bfloat16")])]],
    ],
    [
      "where a reader takes float32 alone",
      [[opaque([], [half]), opaque([x], [], { dtypes: ["float32"] })]],
    ],
    ["where a writer stores single elements", [[opaque([], [half], { unit: 1 })]]],
    ["where parts of it are read", [[opaque([], [half]), opaque([from(256, x)], [])]]],
  ];
  test.each(cases)("%s", (_, parameters) => {
    const before = graph(...parameters);
    expect(narrowStorage(before).nodes).toEqual(before.nodes);
  });

  test("where it belongs to somebody else", () => {
    const [w, given] = [resident(), input()];
    const before = graph([opaque([through(given, "float16")], [through(w, "float16")])]);
    expect(narrowStorage(before).nodes).toEqual(before.nodes);
  });
});
