// Windows of one operator, by ONNX Runtime and here: unequal padding, last windows that overhang, means with padding and without.
import { expect, test } from "vitest";
import type { Attribute } from "../src/attributes.js";
import { fromOnnx, OnnxError } from "../src/index.js";
import { runtime, waves } from "./cases.js";
import { fileOf } from "./one-node.js";
import { runOnnx } from "./session.js";

const shape = [2, 3, 7, 6];
const paddings: readonly (readonly number[] | string)[] = [
  "SAME_UPPER",
  "SAME_LOWER",
  "VALID",
  [0, 0, 0, 0],
  [1, 0, 1, 0],
  [0, 0, 1, 1],
  [1, 0, 0, 1],
  [2, 1, 1, 0],
];
const windows = [
  { kernel_shape: [3, 2], strides: [2, 2] },
  { kernel_shape: [3, 3], strides: [3, 2] },
  { kernel_shape: [3, 2], strides: [1, 3] },
];

test.each(["MaxPool", "AveragePool"])("%s is that of ONNX Runtime", async (operator) => {
  const x = waves(shape);
  const wrong: string[] = [];
  for (const window of windows)
    for (const pads of paddings)
      for (const ceil_mode of [0, 1])
        for (const count_include_pad of operator === "MaxPool" ? [undefined] : [0, 1]) {
          // ONNX Runtime refuses negative padding.
          const leaves = window.kernel_shape.some(
            (size, d) => size < (window.strides[d] as number),
          );
          if (typeof pads === "string" && pads !== "VALID" && leaves) continue;
          if (
            typeof pads !== "string" &&
            pads.some((pad, i) => pad >= (window.kernel_shape[i % 2] as number))
          )
            continue;
          const counted = count_include_pad === undefined ? {} : { count_include_pad };
          const padding = typeof pads === "string" ? { auto_pad: pads } : { pads };
          const attributes = { ...window, ...padding, ceil_mode, ...counted };
          const bytes = fileOf(operator, attributes, { x: shape });
          const wanted = (await runOnnx(bytes, { x })).y;
          const { y } = fromOnnx(runtime, bytes).forward({ x });
          const values = [...((await y?.toArray()) ?? [])];
          const isSame =
            `${y?.shape}` === `${wanted?.dims}` &&
            values.every((v, i) => Math.abs(v - (wanted?.values[i] as number)) <= 1e-5);
          if (!isSame)
            wrong.push(`${JSON.stringify(attributes)}: [${y?.shape}], [${wanted?.dims}]`);
        }
  expect(wrong).toEqual([]);
});

test.each(["SAME_UPPER", "SAME_LOWER"])(
  "Conv with auto_pad %s is that of ONNX Runtime",
  async (auto_pad) => {
    const [x, w] = [waves(shape), waves([4, 3, 3, 2])];
    const dilated = { strides: [1, 2], dilations: [2, 3] };
    // ONNX Runtime takes no dilations beside auto_pad.
    for (const [own, theirs] of [
      [
        { auto_pad, strides: [2, 1] },
        { auto_pad, strides: [2, 1] },
      ],
      [
        { auto_pad, ...dilated },
        { pads: [2, 1, 2, 1], ...dilated },
      ],
    ] as const) {
      const inputs = { x: shape, w: w.shape };
      const wanted = (await runOnnx(fileOf("Conv", theirs, inputs), { x, w })).y;
      const { y } = fromOnnx(runtime, fileOf("Conv", own, inputs)).forward({ x, w });
      expect(y?.shape).toEqual(wanted?.dims);
      const values = [...((await y?.toArray()) ?? [])];
      const off = values.map((v, i) => Math.abs(v - (wanted?.values[i] as number)));
      expect(Math.max(...off)).toBeLessThan(1e-5);
    }
  },
);

test("strides of 0 and other automatic padding are refused", () => {
  const x = waves(shape);
  const pool = (attributes: Readonly<Record<string, Attribute>>) => () =>
    fromOnnx(
      runtime,
      fileOf("MaxPool", { kernel_shape: [2, 2], ...attributes }, { x: shape }),
    ).forward({ x });
  expect(pool({ strides: [0, 1], auto_pad: "SAME_UPPER" })).toThrow(OnnxError);
  expect(pool({ auto_pad: "SAME" })).toThrow("auto_pad SAME");
});
