import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { joinTree, splitTree } from "./state-tree.js";

/** Through the text of a file, as a checkpoint goes. */
const roundTrip = (state: unknown): unknown => {
  const { json, tensors } = splitTree(state);
  return joinTree({ json: JSON.parse(JSON.stringify(json)), tensors });
};

describe("a state cut into JSON and tensors", () => {
  it("comes back as it was, with every number that JSON lacks", () => {
    const state = {
      best: Number.NEGATIVE_INFINITY,
      list: [1, -0, Number.NaN, "text", true, null, []],
      groups: [
        {
          state: {
            "fc.weight": {
              expAvg: Float32Array.of(1, -0, Number.NaN),
              codes: Uint8Array.of(1, 255),
            },
          },
        },
      ],
      weight: { shape: [2, 2], dtype: "float32", data: Float32Array.of(1, 2, 3, 2 ** -149) },
      small: { shape: [3], dtype: "float8e4m3fn", data: Float32Array.of(448, -0.0625, 2 ** -9) },
      steps: { shape: [], dtype: "uint32", data: Uint32Array.of(2 ** 32 - 1) },
      ["__proto__"]: { polluted: 1 },
    };
    expect(roundTrip(state)).toEqual(state);
    expect(Object.is((roundTrip(state) as typeof state).list[1], -0)).toBe(true);
    expect("polluted" in {}).toBe(false);
  });

  it("has tensors by their paths, in the dtype and shape of the module", () => {
    const { tensors } = splitTree({
      "conv.weight": { shape: [1, 2], dtype: "float16", data: Float32Array.of(1, 65504) },
      bias: { shape: [2], dtype: "bfloat16", data: Float32Array.of(-2, 2 ** 100) },
      small: { shape: [2], dtype: "float8e5m2", data: Float32Array.of(1, -57344) },
      groups: [{ expAvg: Float32Array.of(5) }],
    });
    expect(tensors).toEqual({
      "conv.weight": { dtype: "F16", shape: [1, 2], data: Uint16Array.of(0x3c00, 0x7bff) },
      bias: { dtype: "BF16", shape: [2], data: Uint16Array.of(0xc000, 0x7180) },
      small: { dtype: "F8_E5M2", shape: [2], data: Uint8Array.of(0x3c, 0xfb) },
      "groups.0.expAvg": { dtype: "F32", shape: [1], data: Float32Array.of(5) },
    });
  });

  it("keeps float64 numbers of a tensor that counts as half", () => {
    const state = { shape: [1], dtype: "float16", data: Float64Array.of(0.1) };
    expect(roundTrip(state)).toEqual(state);
  });

  it("keeps tensors apart whose paths read the same", () => {
    const state = { a: { "b.c": Int32Array.of(1) }, "a.b": { c: Int32Array.of(2) } };
    expect(Object.keys(splitTree(state).tensors)).toEqual(["a.b.c", "a.b.c#2"]);
    expect(roundTrip(state)).toEqual(state);
  });

  it("holds for whatever plain data there is", () => {
    const key = fc.string().filter((each) => !each.startsWith("$"));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: "small" },
        fc.double(),
        fc.string(),
        fc.boolean(),
        fc.constant(null),
        fc.float32Array(),
        fc.uint16Array(),
        fc.array(tie("tree"), { maxLength: 4 }),
        fc.dictionary(key, tie("tree"), { maxKeys: 4, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(tree, (state) => {
        expect(roundTrip(state)).toStrictEqual(state);
      }),
    );
  });

  it.each([
    ["a function", { lr: () => 1 }, "cannot hold lr: it is a function"],
    ["an instance", { at: new Date(0) }, "cannot hold at: it is a Date, not plain data"],
    ["a map", { of: new Map() }, "cannot hold of: it is a Map"],
    ["a bigint", [1n], "cannot hold 0: it is a bigint"],
    [
      "a view without elements",
      { view: new DataView(new ArrayBuffer(8)) },
      "cannot hold view: it is a DataView",
    ],
    [
      "a reserved key",
      { a: { $number: "1" } },
      'cannot hold a: it is an object with the key "$number"',
    ],
  ])("refuses %s", (_, state, message) => {
    expect(() => splitTree(state)).toThrow(message);
  });

  it("refuses what never ends", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(() => splitTree(circle)).toThrow("more than 64 levels deep");
    const deep = JSON.parse("[".repeat(5000) + "]".repeat(5000));
    expect(() => joinTree({ json: deep, tensors: {} })).toThrow("more than 64 levels deep");
  });

  it("refuses references to nothing, and tensors without one", () => {
    expect(() => joinTree({ json: { $array: "weight" }, tensors: {} })).toThrow(
      "which is not there",
    );
    expect(() => joinTree({ json: { $array: "toString" }, tensors: {} })).toThrow(
      "which is not there",
    );
    const { tensors } = splitTree({ weight: Int32Array.of(1) });
    expect(() => joinTree({ json: {}, tensors })).toThrow('no place for the tensor "weight"');
    expect(() => joinTree({ json: { $tensor: "weight" }, tensors })).toThrow("without a dtype");
    for (const $number of [{ toString: 1 }, [[]], 7])
      expect(() => joinTree({ json: { $number }, tensors: {} })).toThrow(
        "a number that is no text",
      );
  });
});
