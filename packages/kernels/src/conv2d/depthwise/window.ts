import type { KernelScalar } from "@halfstep/device";

/**
 * The 3×3 window that moves over the source along a line of the target: in WGSL, four channels at a time, and in JavaScript. One
 * column of the target is `stride` columns of the source, and one line `stride_y` lines.
 */
export type WindowScalars = Readonly<Record<(typeof names)[number], number>>;

const names = [
  "n",
  "images",
  "source_height",
  "source_width",
  "target_height",
  "target_width",
  "stride_y",
  "padding_y",
  "padding_x",
] as const;

export const windowScalars: readonly KernelScalar[] = names.map((name) => ({ name, type: "u32" }));

export const three = [0, 1, 2] as const;

/** Code for each tap: line i and column j of the window. */
export const eachTap = (code: (i: number, j: number) => string): string =>
  three.map((i) => three.map((j) => code(i, j)).join("")).join("");

/**
 * `value(line, is_inside, column, c)` of a line that begins at pixel `line`: zeros outside of the image. Coordinates before its edge
 * wrap around to numbers past its end.
 */
export const sourceValue = `fn value(line: u32, is_inside: bool, column: u32, c: u32) -> vec4f {
  let inside = is_inside && column < s.source_width;
  let at = (line + column) * (s.n >> 2u) + c;
  return select(vec4f(), load_source(select(0u, at, inside)), inside);
}
`;

/** The value in a column of line i under the window, whose lines are declared as `line0 …` and `inside0 …`. */
export const cell = (i: number, column: string): string =>
  `value(line${i}, inside${i}, ${column}, c)`;

/** Declares the lines under the window of line `y` of `image`. */
export const declareLines: string = three
  .map(
    (i) => `  let row${i} = y * s.stride_y + ${i}u - s.padding_y;
  let inside${i} = row${i} < s.source_height;
  let line${i} = (image * s.source_height + row${i}) * s.source_width;
`,
  )
  .join("");

/** Iterates x from `first` to `last` with `v00 … v22` as the values under the window, and runs `statements` at each place. */
export function walkLine(stride: 1 | 2, first: string, last: string, statements: string): string {
  const kept = 3 - stride;
  const under = (x: string, i: number, j: number): string =>
    cell(i, `${x} * ${stride}u + ${j}u - s.padding_x`);
  return `${eachTap((i, j) => (j < kept ? `  var v${i}${j} = ${under(first, i, j)};\n` : ""))}  for (var x = ${first}; x < ${last}; x++) {
${eachTap((i, j) => (j < kept ? "" : `    let v${i}${j} = ${under("x", i, j)};\n`))}${statements}${eachTap((i, j) => (j < kept ? `    v${i}${j} = v${i}${j + stride};\n` : ""))}  }
`;
}

/** Calls `visit` with each tap and the first channels of its source and target pixels. */
export function eachMeeting(
  s: WindowScalars,
  stride: 1 | 2,
  visit: (tap: number, from: number, to: number) => void,
): void {
  // Scalars are unsigned: a negative padding has wrapped around.
  const [top, left] = [s.padding_y | 0, s.padding_x | 0];
  for (let line = 0; line < s.images * s.target_height; line++)
    for (const i of three) {
      const row = (line % s.target_height) * s.stride_y + i - top;
      if (row < 0 || row >= s.source_height) continue;
      const above = Math.floor(line / s.target_height) * s.source_height + row;
      for (const j of three)
        for (let x = 0; x < s.target_width; x++) {
          const column = x * stride + j - left;
          if (column < 0 || column >= s.source_width) continue;
          visit(
            3 * i + j,
            (above * s.source_width + column) * s.n,
            (line * s.target_width + x) * s.n,
          );
        }
    }
}

/** Adds the products of the `n` channels at `i` of x and `j` of y to those at `to` of the sums. */
export function addProducts(
  sums: Float64Array,
  to: number,
  x: ArrayLike<number>,
  i: number,
  y: ArrayLike<number>,
  j: number,
  n: number,
): void {
  for (let c = 0; c < n; c++)
    sums[to + c] = (sums[to + c] as number) + (x[i + c] as number) * (y[j + c] as number);
}
