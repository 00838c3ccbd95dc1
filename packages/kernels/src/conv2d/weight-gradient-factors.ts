import type { BlockFactors, BlockLoads, FactorLoad, LoadRegisters } from "../matmul/block.js";
import type { TilePlan } from "../matmul/shape.js";
import type { CopiedChannels } from "./gather-factors.js";
import {
  farAway,
  firstChannels,
  type Gathering,
  gatheredFactor,
  inGroups,
  sourceFunction,
} from "./gathering.js";
import { groupColumns } from "./group-columns.js";
import { partOfPixels } from "./weight-gradient.js";

/**
 * The product of `weightGradientContraction()` by blocks. Before the loop over k, an invocation decodes the tap and channel of its rows,
 * and the pixels of its loads; in the loop it moves the pixels by additions.
 */
export const weightGradientFactors = (
  plan: Pick<TilePlan, "width" | "isAligned">,
  { channelGroup, columnGroup }: CopiedChannels,
): BlockFactors => ({
  functions: "",
  range: () => `  let channel_group = slice / s.splits;
${partOfPixels}  let k_end = min(pixels, end * 4u);
`,
  left: gatheredFactor("across", channelGroup, rowsOfTaps),
  right: groupColumns("gradient", plan, columnGroup),
});

/** Rows are taps × channels: all loads share the offset of their tap and channel, and a load has its own pixel. */
function rowsOfTaps(gathering: Gathering): FactorLoad {
  const registers = ({ count, depth, line, place }: BlockLoads): LoadRegisters => {
    let before = `  let channels = ${inGroups(gathering, "s.channels")};
  let pitch = channels * s.groups;
  let tap_row = ${firstChannels(gathering, place(0))};
  let tap = tap_row / channels;
  let tap_y = tap / s.kernel_width * s.dilation_y - s.padding_y;
  let tap_x = tap % s.kernel_width * s.dilation_x - s.padding_x;
  let tap_channel = channel_group * channels + tap_row % channels;
  let tap_at = (tap_y * s.source_width + tap_x) * pitch + tap_channel;
  // Coordinates of pixels are those of the source under their first tap.
  let span_x = s.target_width * s.stride_x;
  let span_y = s.target_height * s.stride_y;
  let ahead_x = ${depth}u % s.target_width * s.stride_x;
  let ahead_y = ${depth}u / s.target_width % s.target_height * s.stride_y;
  let ahead_image = ${depth}u / s.target_width / s.target_height * s.source_height;
`;
    let advance = "";
    for (let i = 0; i < count; i++) {
      before += `  let pixel${i} = ${line(i)};
  let pixel${i}_line = pixel${i} / s.target_width;
  var pixel${i}_x = pixel${i} % s.target_width * s.stride_x;
  var pixel${i}_y = pixel${i}_line % s.target_height * s.stride_y;
  var pixel${i}_image = pixel${i}_line / s.target_height * s.source_height;
`;
      advance += `    pixel${i}_x += ahead_x;
    let pixel${i}_turn = pixel${i}_x >= span_x;
    pixel${i}_x -= select(0u, span_x, pixel${i}_turn);
    pixel${i}_y += ahead_y + select(0u, s.stride_y, pixel${i}_turn);
    let pixel${i}_next = pixel${i}_y >= span_y;
    pixel${i}_y -= select(0u, span_y, pixel${i}_next);
    pixel${i}_image += ahead_image + select(0u, s.source_height, pixel${i}_next);
`;
    }
    return { before, advance };
  };
  return {
    functions: sourceFunction(gathering),
    registers,
    of: (pixel, _quad, i) =>
      `source_at(((pixel${i}_image + pixel${i}_y) * s.source_width + pixel${i}_x) * pitch + tap_at, select(${farAway}, pixel${i}_y, ${pixel} < k_end) + tap_y, pixel${i}_x + tap_x)`,
  };
}
