import type { BlockFactors, BlockLoads, FactorLoad, LoadRegisters } from "../matmul/block.js";
import type { TilePlan } from "../matmul/shape.js";
import { type GatherLayout, isPhased, originOf, phaseOfSlice } from "./gather.js";
import {
  type ChannelGroup,
  farAway,
  firstChannels,
  type Gathering,
  gatheredFactor,
  inGroups,
  sourceFunction,
} from "./gathering.js";
import { groupColumns } from "./group-columns.js";

/** The groups of channels that blocks may copy: of the gathered channels, and of the columns. */
export interface CopiedChannels {
  readonly channelGroup: ChannelGroup;
  readonly columnGroup: ChannelGroup;
}

/**
 * The product of `gatherContraction()` by blocks. Before the loop over k, an invocation decodes the pixels of its rows, and the tap
 * and channel of its k; in the loop it moves tap and channel by additions.
 *
 * @returns undefined for strides that need a division for each tap.
 */
export function gatherFactors(
  plan: Pick<TilePlan, "width" | "isAligned">,
  layout: GatherLayout,
  { channelGroup, columnGroup }: CopiedChannels,
): BlockFactors | undefined {
  if (layout.direction === "backward" && layout.stride === "any") return undefined;
  return {
    functions: "",
    range: () => rangeOfSlice(layout),
    left: gatheredFactor("k", channelGroup, (gathering) => gatheredPixels(layout, gathering)),
    right:
      layout.direction === "forward"
        ? groupColumns("weight", plan, columnGroup)
        : gatheredFactor("k", channelGroup, (gathering) => weightOfTaps(layout, gathering)),
  };
}

/** The taps of a slice, and its k. */
function rangeOfSlice(layout: GatherLayout): string {
  const taps = (axis: "x" | "y", size: string): string =>
    isPhased(layout)
      ? `  let first_${axis} = phase_${axis} % s.stride_${axis};
  let taps_${axis} = (${size} + s.stride_${axis} - 1u - first_${axis}) / s.stride_${axis};
`
      : `  let taps_${axis} = ${size};\n`;
  return `  let channel_group = slice % s.groups;
${isPhased(layout) ? phaseOfSlice : ""}${taps("y", "s.kernel_height")}${taps("x", "s.kernel_width")}  let k_end = taps_y * taps_x * s.channels;
  let begin = 0u;
  let end = (k_end + 3u) >> 2u;
`;
}

/** Rows are pixels of the target: a load has its pixel's first tap, and all loads share the offset of the tap and channel of k. */
function gatheredPixels(layout: GatherLayout, gathering: Gathering): FactorLoad {
  const offset = (tap: string): string => (layout.direction === "forward" ? tap : `0u - ${tap}`);
  const { place } = gathering;
  const far = `${place}(${farAway})`;
  const registers = (loads: BlockLoads): LoadRegisters => {
    const { before, advance } = tapAndChannel("left", loads, gathering, {
      left_row: `select(${far}, ${offset("left_ky * s.dilation_y")}, left_ky < ${place}(taps_y))`,
      left_column: offset("left_kx * s.dilation_x"),
      left_at: "(left_row * s.source_width + left_column) * left_pitch + left_channel",
    });
    let pixels = "";
    for (let i = 0; i < loads.count; i++)
      pixels += `  let pixel${i} = ${loads.line(i)};
  let pixel${i}_line = pixel${i} / s.target_width;
  let pixel${i}_column = ${originOf(layout, "x", `pixel${i} % s.target_width`)};
  let pixel${i}_row = ${originOf(layout, "y", `pixel${i}_line % s.target_height`)};
  let pixel${i}_image = pixel${i}_line / s.target_height * s.source_height;
  let pixel${i}_at = ((pixel${i}_image + pixel${i}_row) * s.source_width + pixel${i}_column) * left_pitch + left_first;
`;
    return { before: before + pixels, advance };
  };
  return {
    functions: sourceFunction(gathering),
    registers,
    of: (_line, _quad, i) =>
      `source_at(pixel${i}_at + left_at, pixel${i}_row + left_row, pixel${i}_column + left_column)`,
  };
}

/** The weight of each tap as [n, k]: columns are input channels, and k runs over taps and output channels. */
function weightOfTaps(layout: GatherLayout, gathering: Gathering): FactorLoad {
  const { place, value, load } = gathering;
  const tap = isPhased(layout)
    ? "(first_y + right_ky * s.stride_y) * s.kernel_width + first_x + right_kx * s.stride_x"
    : "right_ky * s.kernel_width + right_kx";
  const registers = (loads: BlockLoads): LoadRegisters => {
    const { before, advance } = tapAndChannel("right", loads, gathering, {
      right_at: `(${tap}) * s.n * right_pitch + right_channel`,
      right_inside: `right_ky < ${place}(taps_y)`,
    });
    let columns = "";
    for (let i = 0; i < loads.count; i++)
      columns += `  let column${i}_at = (${loads.line(i)}) * right_pitch + right_first;\n`;
    return { before: before + columns, advance };
  };
  return {
    functions: `fn weight_at(at: ${place}, inside: ${place === "u32" ? "bool" : "vec4<bool>"}) -> ${value} {
  return select(${value}(), ${load("weight", "at")}, inside);
}
`,
    registers,
    of: (_line, _quad, i) => `weight_at(column${i}_at + right_at, right_inside)`,
  };
}

/**
 * Registers for the tap (`name_ky`, `name_kx`) and the channel (`name_channel`) of the k that an invocation loads, which is the same
 * in all its loads, and for what is computed from them. They move along k like digits of a number, each with a carry. Channels are
 * counted in groups, as are `name_first`, the first channel, and `name_pitch`, those of a pixel.
 */
function tapAndChannel(
  name: string,
  { depth, place: number }: BlockLoads,
  gathering: Gathering,
  computed: Readonly<Record<string, string>>,
): LoadRegisters {
  const { group, place } = gathering;
  const ahead = `${depth / group}u`;
  const registers = Object.entries(computed);
  return {
    before: `  let ${name}_channels = ${inGroups(gathering, "s.channels")};
  let ${name}_pitch = ${name}_channels * s.groups;
  let ${name}_first = channel_group * ${name}_channels;
  let ${name}_k = ${firstChannels(gathering, number(0))};
  var ${name}_channel = ${name}_k % ${name}_channels;
  var ${name}_kx = ${name}_k / ${name}_channels % taps_x;
  var ${name}_ky = ${name}_k / ${name}_channels / taps_x;
  let ${name}_ahead_channel = ${ahead} % ${name}_channels;
  let ${name}_ahead_x = ${ahead} / ${name}_channels % taps_x;
  let ${name}_ahead_y = ${ahead} / ${name}_channels / taps_x;
${registers.map(([register, value]) => `  var ${register} = ${value};\n`).join("")}`,
    advance: `    ${name}_channel += ${name}_ahead_channel;
    let ${name}_turn = ${name}_channel >= ${place}(${name}_channels);
    ${name}_channel -= select(${place}(), ${place}(${name}_channels), ${name}_turn);
    ${name}_kx += ${name}_ahead_x + select(${place}(), ${place}(1u), ${name}_turn);
    let ${name}_next = ${name}_kx >= ${place}(taps_x);
    ${name}_kx -= select(${place}(), ${place}(taps_x), ${name}_next);
    ${name}_ky += ${name}_ahead_y + select(${place}(), ${place}(1u), ${name}_next);
${registers.map(([register, value]) => `    ${register} = ${value};\n`).join("")}`,
  };
}
