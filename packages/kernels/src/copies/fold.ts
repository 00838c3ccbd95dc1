import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

type Two = readonly [number, number];

/** Windows into images; pairs are height and width. */
export interface FoldAttributes {
  readonly image: readonly [batch: number, height: number, width: number, channels: number];
  readonly window: Two;
  readonly stride: Two;
  readonly dilation: Two;
  /** The number of windows. */
  readonly places: Two;
}

/**
 * out[batch, height, width, channels] = the sum of the windows input[batch, places, window, channels] at their places in the image, in
 * float32 and in the order of the windows' elements.
 */
export function fold<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  { image, window, stride, dilation, places }: FoldAttributes,
): Launch<B> {
  const [batch, height, width, channels] = image;
  const count = batch * height * width * channels;
  requireLengths("fold", operands, {
    input: batch * places[0] * places[1] * window[0] * window[1] * channels,
    out: count,
  });
  return {
    kernel,
    bindings: [operands.input, operands.out],
    scalars: {
      ...{ count, height, width, channels },
      ...{ rows: window[0], columns: window[1], down: stride[0], right: stride[1] },
      ...{ below: dilation[0], beside: dilation[1], placesDown: places[0], placesRight: places[1] },
    },
  };
}

const names = [
  "count",
  "height",
  "width",
  "channels",
  "rows",
  "columns",
  "down",
  "right",
  "below",
  "beside",
  "placesDown",
  "placesRight",
] as const;

const kernel: Kernel = defineKernel({
  name: "fold",
  epilogue: "store",
  bindings: [
    { name: "input", access: "read" },
    { name: "out", access: "write" },
  ],
  scalars: names.map((name) => ({ name, type: "u32" })),
  body: () => `
fn value(e: u32) -> f32 {
  let c = e % s.channels;
  let x = e / s.channels % s.width;
  let y = e / s.channels / s.width % s.height;
  let b = e / s.channels / s.width / s.height;
  var sum = 0.0;
  for (var i = 0u; i < s.rows; i++) {
    let top = y - i * s.below;
    let row = top / s.down;
    if ((y < i * s.below) | (top % s.down != 0u) | (row >= s.placesDown)) { continue; }
    for (var j = 0u; j < s.columns; j++) {
      let left = x - j * s.beside;
      let column = left / s.right;
      if ((x < j * s.beside) | (left % s.right != 0u) | (column >= s.placesRight)) { continue; }
      let place = (b * s.placesDown + row) * s.placesRight + column;
      sum += at_input(((place * s.rows + i) * s.columns + j) * s.channels + c);
    }
  }
  return sum;
}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  var sums: vec4f;
  for (var l = 0u; l < 4u; l++) {
    if (index * 4u + l < s.count) { sums[l] = value(index * 4u + l); }
  }
  store_out(index, sums);
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([input, out], scalars) {
    const [from, to] = [input as KernelView, out as KernelView];
    const s = scalars as Record<(typeof names)[number], number>;
    for (let e = 0; e < s.count; e++) {
      const c = e % s.channels;
      const x = Math.floor(e / s.channels) % s.width;
      const y = Math.floor(e / s.channels / s.width) % s.height;
      const b = Math.floor(e / s.channels / s.width / s.height);
      let sum = 0;
      for (let i = 0; i < s.rows; i++)
        for (let j = 0; j < s.columns; j++) {
          const [row, column] = [(y - i * s.below) / s.down, (x - j * s.beside) / s.right];
          if (!(isPlace(row, s.placesDown) && isPlace(column, s.placesRight))) continue;
          const place = (b * s.placesDown + row) * s.placesRight + column;
          sum += from[((place * s.rows + i) * s.columns + j) * s.channels + c] as number;
        }
      to[e] = sum;
    }
  },
});

const isPlace = (index: number, count: number): boolean =>
  Number.isInteger(index) && index >= 0 && index < count;
