import type { BlockFactors, BlockLoads, FactorQuads, LoadRegisters } from "../matmul/block.js";
import { type GatherLayout, isPhased, originOf, phaseOfSlice } from "./gather.js";
import { type BlockFactor, groupColumns } from "./group-columns.js";
import { farAway, type PlaceType, placeType, quadAt, sourceQuad } from "./source-quad.js";

/**
 * The product of `gatherContraction()` by blocks. Before the loop over k, an invocation decodes the pixels of its rows, and the tap
 * and channel of its k; in the loop it moves tap and channel by additions.
 *
 * @returns undefined for strides that need a division for each tap.
 */
export function gatherFactors(width: 2 | 4, layout: GatherLayout): BlockFactors | undefined {
  if (layout.direction === "backward" && layout.stride === "any") return undefined;
  const type = placeType(layout.isQuads);
  const right: BlockFactor =
    layout.direction === "forward"
      ? groupColumns("weight", width, layout.isAligned)
      : weightOfTaps(layout, type);
  return {
    functions: sourceQuad(type) + right.functions,
    range: () => rangeOfSlice(layout),
    hasRowSums: false,
    left: gatheredPixels(layout, type),
    right: right.quads,
  };
}

/** The taps of a slice, and its k. `channels` and all offsets count quads of channels, or elements. */
function rangeOfSlice(layout: GatherLayout): string {
  const taps = (axis: "x" | "y", size: string): string =>
    isPhased(layout)
      ? `  let first_${axis} = phase_${axis} % s.stride_${axis};
  let taps_${axis} = (${size} + s.stride_${axis} - 1u - first_${axis}) / s.stride_${axis};
`
      : `  let taps_${axis} = ${size};\n`;
  return `  let channel_group = slice % s.groups;
${isPhased(layout) ? phaseOfSlice : ""}${taps("y", "s.kernel_height")}${taps("x", "s.kernel_width")}  let channels = ${layout.isQuads ? "s.channels >> 2u" : "s.channels"};
  let pitch = channels * s.groups;
  let first_channel = channel_group * channels;
  let k_end = taps_y * taps_x * s.channels;
  let begin = 0u;
  let end = (k_end + 3u) >> 2u;
`;
}

/** Rows are pixels of the target: a load has its pixel's first tap, and all loads share the offset of the tap and channel of k. */
function gatheredPixels(layout: GatherLayout, type: PlaceType): FactorQuads {
  const offset = (tap: string): string => (layout.direction === "forward" ? tap : `0u - ${tap}`);
  const registers = (loads: BlockLoads): LoadRegisters => {
    const place = tapAndChannel("left", loads, type, [
      [
        "left_row",
        `select(${type}(${farAway}), ${offset("left_ky * s.dilation_y")}, left_ky < ${type}(taps_y))`,
      ],
      ["left_column", offset("left_kx * s.dilation_x")],
      ["left_at", "(left_row * s.source_width + left_column) * pitch + left_channel"],
    ]);
    let before = "";
    for (let i = 0; i < loads.count; i++)
      before += `  let pixel${i} = ${loads.line(i)};
  let pixel${i}_line = pixel${i} / s.target_width;
  let pixel${i}_column = ${originOf(layout, "x", `pixel${i} % s.target_width`)};
  let pixel${i}_row = ${originOf(layout, "y", `pixel${i}_line % s.target_height`)};
  let pixel${i}_image = pixel${i}_line / s.target_height * s.source_height;
  let pixel${i}_at = ((pixel${i}_image + pixel${i}_row) * s.source_width + pixel${i}_column) * pitch + first_channel;
`;
    return { before: before + place.before, advance: place.advance };
  };
  return {
    along: "k",
    isBounded: true,
    registers,
    of: (_line, _quad, i) =>
      `source_quad(pixel${i}_at + left_at, pixel${i}_row + left_row, pixel${i}_column + left_column)`,
  };
}

/** The weight of each tap as [n, k]: columns are input channels, and k runs over taps and output channels. */
function weightOfTaps(layout: GatherLayout, type: PlaceType): BlockFactor {
  const tap = isPhased(layout)
    ? "(first_y + right_ky * s.stride_y) * s.kernel_width + first_x + right_kx * s.stride_x"
    : "right_ky * s.kernel_width + right_kx";
  const registers = (loads: BlockLoads): LoadRegisters => {
    const place = tapAndChannel("right", loads, type, [
      ["right_at", `(${tap}) * s.n * pitch + right_channel`],
      ["right_inside", `right_ky < ${type}(taps_y)`],
    ]);
    let before = "";
    for (let i = 0; i < loads.count; i++)
      before += `  let column${i}_at = (${loads.line(i)}) * pitch + first_channel;\n`;
    return { before: before + place.before, advance: place.advance };
  };
  const boolean = type === "u32" ? "bool" : "vec4<bool>";
  return {
    functions: `fn right_quad(at: ${type}, inside: ${boolean}) -> vec4f {
  return select(vec4f(), ${quadAt("weight", "at", type)}, inside);
}
`,
    quads: {
      along: "k",
      isBounded: true,
      registers,
      of: (_line, _quad, i) => `right_quad(column${i}_at + right_at, right_inside)`,
    },
  };
}

/**
 * Registers for the tap (`name_ky`, `name_kx`) and the channel (`name_channel`) of the k that an invocation loads, which is the same
 * in all its loads, and for what is computed from them. They move along k like digits of a number, each with a carry.
 */
function tapAndChannel(
  name: string,
  { depth, quad }: BlockLoads,
  type: PlaceType,
  computed: readonly (readonly [register: string, value: string])[],
): LoadRegisters {
  const [first, ahead] =
    type === "u32" ? [quad(0), depth / 4] : [`(${quad(0)}) * 4u + vec4u(0u, 1u, 2u, 3u)`, depth];
  return {
    before: `  let ${name}_k = ${first};
  var ${name}_channel = ${name}_k % channels;
  var ${name}_kx = ${name}_k / channels % taps_x;
  var ${name}_ky = ${name}_k / channels / taps_x;
  let ${name}_ahead_channel = ${ahead}u % channels;
  let ${name}_ahead_x = ${ahead}u / channels % taps_x;
  let ${name}_ahead_y = ${ahead}u / channels / taps_x;
${computed.map(([register, value]) => `  var ${register} = ${value};\n`).join("")}`,
    advance: `    ${name}_channel += ${name}_ahead_channel;
    let ${name}_turn = ${name}_channel >= ${type}(channels);
    ${name}_channel -= select(${type}(), ${type}(channels), ${name}_turn);
    ${name}_kx += ${name}_ahead_x + select(${type}(), ${type}(1u), ${name}_turn);
    let ${name}_next = ${name}_kx >= ${type}(taps_x);
    ${name}_kx -= select(${type}(), ${type}(taps_x), ${name}_next);
    ${name}_ky += ${name}_ahead_y + select(${type}(), ${type}(1u), ${name}_next);
${computed.map(([register, value]) => `    ${register} = ${value};\n`).join("")}`,
  };
}
