import { transposeColumns } from "../matmul/contraction.js";
import type { Contraction, Tile, TileShape } from "../matmul/tile.js";

/** The static choices of a product with pixels as rows and taps × channels as k. */
export type GatherLayout = {
  /** The number of channels gathered is a multiple of 4. */
  readonly isQuads: boolean;
} & (
  | { readonly direction: "forward"; readonly isAligned: boolean }
  | { readonly direction: "backward"; readonly stride: BackwardStride }
);

/**
 * How the taps for a pixel of the input are found. "phases": pixels whose coordinates have the same remainder by the stride have
 * the same taps. Each such phase is a product of its own, over taps with that stride; for undilated windows of quads.
 */
export type BackwardStride = "unit" | "phases" | "any";

/** Row i is target pixel i; the left operand has the source pixels of its taps, with zeros outside. */
export function gatherContraction({ width }: TileShape, layout: GatherLayout): Contraction {
  return {
    along: "k",
    functions: sourceCoordinate("y", layout) + sourceCoordinate("x", layout),
    loops: (tile) =>
      placeOfSlice(layout, width) +
      originsOf(tile, layout) +
      (layout.isQuads ? quadLoops(tile, layout, width) : elementLoop(tile, layout, width)),
  };
}

/**
 * `source_y(origin, tap)`: the source coordinate of a tap, or one past the end of any image. Coordinates before the start also wrap
 * around to such numbers.
 */
function sourceCoordinate(axis: "x" | "y", layout: GatherLayout): string {
  const head = `fn source_${axis}(origin: u32, tap: u32) -> u32 {`;
  if (layout.direction === "forward")
    return `${head} return origin + tap * s.dilation_${axis}; }\n`;
  const scaled = `origin - tap * s.dilation_${axis}`;
  // Taps and pixels of a phase are numbered without gaps.
  return layout.stride !== "any"
    ? `${head} return ${scaled}; }\n`
    : `${head}
  let scaled = ${scaled};
  return select(0xffffffffu, scaled / s.stride_${axis}, scaled % s.stride_${axis} == 0u);
}
`;
}

/** A slice is a group of channels; in the backward direction, a group of one phase. */
function placeOfSlice(layout: GatherLayout, width: 2 | 4): string {
  const group = "  let channel_group = slice % s.groups;\n";
  if (layout.direction === "forward") {
    const [columns, column] = layout.isAligned
      ? ["s.columns", "column"]
      : ["s.n", `column * ${width}u`];
    return `${group}  let weight_pitch = ${columns} * s.groups;
  let weight_column = channel_group * ${columns} + ${column};
`;
  }
  if (layout.stride !== "phases") return group;
  return group + phaseOfSlice;
}

/** WGSL of a slice's phase, shifted by the padding. */
export const phaseOfSlice = `  let phase_y = slice / s.groups / s.phases_x + s.padding_y;
  let phase_x = slice / s.groups % s.phases_x + s.padding_x;
`;

export const isPhased = (layout: GatherLayout): boolean =>
  layout.direction === "backward" && layout.stride === "phases";

/** WGSL of the source coordinate of the first tap, for the target coordinate `at`. */
export function originOf(layout: GatherLayout, axis: "x" | "y", at: string): string {
  if (layout.direction === "forward") return `(${at}) * s.stride_${axis} - s.padding_${axis}`;
  return isPhased(layout)
    ? `(${at}) + phase_${axis} / s.stride_${axis}`
    : `(${at}) + s.padding_${axis}`;
}

function originsOf({ registers }: Tile, layout: GatherLayout): string {
  return registers
    .map(
      ({ name, part }) => `  let ${name}_pixel = row + ${part};
  let ${name}_line = ${name}_pixel / s.target_width;
  let ${name}_x = ${originOf(layout, "x", `${name}_pixel % s.target_width`)};
  let ${name}_y = ${originOf(layout, "y", `${name}_line % s.target_height`)};
  let ${name}_image = ${name}_line / s.target_height * s.source_height;
`,
    )
    .join("");
}

/** Declares the first channel of each register's source pixel for a tap, in units of `stride`, and whether the pixel is inside. */
const findPixels = ({ registers }: Tile, ky: string, kx: string, stride: string, id = ""): string =>
  registers
    .map(({ name }) => {
      const own = `${name}${id}`;
      return `let ${own}_row = source_y(${name}_y, ${ky});
let ${own}_column = source_x(${name}_x, ${kx});
let ${own}_inside = (${own}_row < s.source_height) & (${own}_column < s.source_width);
let ${own}_at = select(0u, ((${name}_image + ${own}_row) * s.source_width + ${own}_column) * ${stride}, ${own}_inside);
`;
    })
    .join("");

function quadLoops(tile: Tile, layout: GatherLayout, width: 2 | 4): string {
  const left = tile.registers
    .map(
      ({ name }) =>
        `let ${name} = select(vec4f(), load_source(${name}_at + first_quad + quad), ${name}_inside);\n`,
    )
    .join("");
  const isPhases = isPhased(layout);
  const taps = (axis: "x" | "y", size: string): string =>
    isPhases
      ? `  let first_${axis} = phase_${axis} % s.stride_${axis};
  for (var k${axis} = 0u; first_${axis} + k${axis} * s.stride_${axis} < ${size}; k${axis}++) {
`
      : `  for (var k${axis} = 0u; k${axis} < ${size}; k${axis}++) {\n`;
  const tap = isPhases
    ? "(first_y + ky * s.stride_y) * s.kernel_width + first_x + kx * s.stride_x"
    : "ky * s.kernel_width + kx";
  return `  let quads = s.channels >> 2u;
  let pitch = quads * s.groups;
  let first_quad = channel_group * quads;
${taps("y", "s.kernel_height")}${taps("x", "s.kernel_width")}  let tap = ${tap};
${findPixels(tile, "ky", "kx", "pitch")}
  for (var quad = 0u; quad < quads; quad++) {
${layout.direction === "forward" ? weightRows(layout.isAligned, width) : weightColumns(width)}
${left}${tile.accumulate}  }
  }
  }
`;
}

/** The weight is [k, n] when its taps and input channels are k. */
function weightRows(isAligned: boolean, width: 2 | 4): string {
  return [0, 1, 2, 3]
    .map(
      (u) =>
        `let b${u} = ${weightRow(`(tap * s.channels + quad * 4u + ${u}u)`, isAligned, width)};\n`,
    )
    .join("");
}

const weightRow = (row: string, isAligned: boolean, width: 2 | 4): string => {
  if (isAligned) return `load_weight(${row} * weight_pitch + weight_column)`;
  const elements = Array.from(
    { length: width },
    (_, j) => `at_weight(${row} * weight_pitch + weight_column + ${j}u)`,
  );
  return `vec${width}f(${elements.join(", ")})`;
};

/** The weight of each tap is [n, k] when output channels are k. */
const weightColumns = (width: 2 | 4): string =>
  Array.from(
    { length: width },
    (_, j) =>
      `let d${j} = load_weight((tap * s.n + column * ${width}u + ${j}u) * pitch + first_quad + quad);\n`,
  ).join("") + transposeColumns(width);

/** Any number of channels: tap and channel advance with k, one element at a time. */
function elementLoop(tile: Tile, layout: GatherLayout, width: 2 | 4): string {
  let code = `  let pitch = s.channels * s.groups;
  let first_channel = channel_group * s.channels;
  let depth = s.kernel_height * s.kernel_width * s.channels;
  var ky = 0u;
  var kx = 0u;
  var channel = 0u;
  for (var k = 0u; k < depth; k += 4u) {
${tile.registers.map(({ name }) => `var ${name} = vec4f();\n`).join("")}`;
  for (let u = 0; u < 4; u++) {
    code += `let k${u} = k + ${u}u;
let has${u} = k${u} < depth;
${findPixels(tile, "ky", "kx", "pitch", `_${u}`)}`;
    for (const { name } of tile.registers)
      code += `${name}[${u}] = select(0.0, at_source(${name}_${u}_at + first_channel + channel), ${name}_${u}_inside & has${u});\n`;
    code += `let b${u} = select(vec${width}f(), ${weightElements(layout, width, u)}, has${u});
channel++;
let turn${u} = channel == s.channels;
channel = select(channel, 0u, turn${u});
kx += select(0u, 1u, turn${u});
let line${u} = kx == s.kernel_width;
kx = select(kx, 0u, line${u});
ky += select(0u, 1u, line${u});
`;
  }
  return `${code}${tile.accumulate}  }
`;
}

function weightElements(layout: GatherLayout, width: 2 | 4, u: number): string {
  if (layout.direction === "forward") return weightRow(`k${u}`, layout.isAligned, width);
  const elements = Array.from(
    { length: width },
    (_, j) =>
      `at_weight(((ky * s.kernel_width + kx) * s.n + column * ${width}u + ${j}u) * pitch + first_channel + channel)`,
  );
  return `vec${width}f(${elements.join(", ")})`;
}
