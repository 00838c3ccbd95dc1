import type { Contraction, Register, TileShape } from "../matmul/tile.js";

/** The static choices of a weight's gradient. */
export interface WeightGradientLayout {
  /** The number of input channels is a multiple of 4. */
  readonly isQuads: boolean;
  /** The number of output channels is a multiple of the tile's width. */
  readonly isAligned: boolean;
}

/** Rows are taps × input channels, columns output channels, and k runs over the pixels of the output. */
export function weightGradientContraction(
  { width }: TileShape,
  { isQuads, isAligned }: WeightGradientLayout,
): Contraction {
  const declare = isQuads ? declareQuad : declareElements;
  const load = isQuads ? loadQuad : loadElements;
  return {
    along: "rows",
    loops: ({ rows, registers, accumulate }) => `  let channel_group = slice / s.splits;
  let pitch = ${isAligned ? "s.columns" : "s.n"} * s.groups;
  let first_column = channel_group * ${isAligned ? "s.columns + column" : `s.n + column * ${width}u`};
${partOfPixels}  // Four pixels further in lines and images, so that no step divides.
  let ahead_x = 4u % s.target_width;
  let ahead_y = 4u / s.target_width % s.target_height;
  let ahead_image = 4u / s.target_width / s.target_height;
${registers.map((register) => position(register, rows / 4) + declare(register)).join("")}
  for (var step = begin; step < end; step++) {
${[0, 1, 2, 3].map((u) => right(u, isAligned, width)).join("")}
${registers.map((register) => load(register) + advance(register)).join("")}
${accumulate}  }
`,
  };
}

/** WGSL of the quads of pixels of a slice, from `begin` to `end`. */
export const partOfPixels = `  let pixels = s.images * s.target_height * s.target_width;
  let steps = (pixels + 3u) >> 2u;
  let depth = (steps + s.splits - 1u) / s.splits;
  let begin = slice % s.splits * depth;
  let end = min(steps, begin + depth);
`;

const position = (
  { name, part }: Register,
  quads: number,
): string => `  let ${name}_quad = (row >> 2u) + ${part} % ${quads}u;
  let ${name}_pixel = begin * 4u + ${part} / ${quads}u;
  let ${name}_line = ${name}_pixel / s.target_width;
  var ${name}_x = ${name}_pixel % s.target_width;
  var ${name}_y = ${name}_line % s.target_height;
  var ${name}_image = ${name}_line / s.target_height;
`;

const advance = ({ name }: Register): string => `${name}_x += ahead_x;
let ${name}_turn = ${name}_x >= s.target_width;
${name}_x -= select(0u, s.target_width, ${name}_turn);
${name}_y += ahead_y + select(0u, 1u, ${name}_turn);
let ${name}_next = ${name}_y >= s.target_height;
${name}_y -= select(0u, s.target_height, ${name}_next);
${name}_image += ahead_image + select(0u, 1u, ${name}_next);
`;

/** Offsets of the tap of row `at` of the result. Offsets before the image's edge wrap around. */
const tapOf = (id: string, at: string): string => `  let ${id}_tap = ${at} / s.channels;
  let ${id}_dy = ${id}_tap / s.kernel_width * s.dilation_y - s.padding_y;
  let ${id}_dx = ${id}_tap % s.kernel_width * s.dilation_x - s.padding_x;
`;

const declareQuad = ({ name }: Register): string =>
  `${tapOf(name, `(${name}_quad * 4u)`)}  let ${name}_channel = channel_group * (s.channels >> 2u) + ${name}_quad % (s.channels >> 2u);\n`;

const declareElements = ({ name }: Register): string =>
  [0, 1, 2, 3]
    .map((e) => {
      const at = `(${name}_quad * 4u + ${e}u)`;
      return `${tapOf(`${name}_${e}`, at)}  let ${name}_${e}_channel = channel_group * s.channels + ${at} % s.channels;\n`;
    })
    .join("");

const findPixel = (
  name: string,
  id: string,
  stride: string,
): string => `let ${id}_row = ${name}_y * s.stride_y + ${id}_dy;
let ${id}_column = ${name}_x * s.stride_x + ${id}_dx;
let ${id}_inside = (${id}_row < s.source_height) & (${id}_column < s.source_width) & (${name}_image < s.images);
let ${id}_at = select(0u, ((${name}_image * s.source_height + ${id}_row) * s.source_width + ${id}_column) * ${stride} + ${id}_channel, ${id}_inside);
`;

const loadQuad = ({ name }: Register): string =>
  `${findPixel(name, name, "(s.channels >> 2u) * s.groups")}let ${name} = select(vec4f(), load_source(${name}_at), ${name}_inside);\n`;

const loadElements = ({ name }: Register): string => {
  const ids = [0, 1, 2, 3].map((e) => `${name}_${e}`);
  const elements = ids.map((id) => `select(0.0, at_source(${id}_at), ${id}_inside)`);
  return `${ids.map((id) => findPixel(name, id, "s.channels * s.groups")).join("")}let ${name} = vec4f(${elements.join(", ")});\n`;
};

function right(u: number, isAligned: boolean, width: 2 | 4): string {
  const pixel = `(step * 4u + ${u}u)`;
  const elements = Array.from(
    { length: width },
    (_, j) => `at_gradient(${pixel} * pitch + first_column + ${j}u)`,
  );
  const value = isAligned
    ? `load_gradient(${pixel} * pitch + first_column)`
    : `vec${width}f(${elements.join(", ")})`;
  return `let b${u} = select(vec${width}f(), ${value}, ${pixel} < pixels);\n`;
}
