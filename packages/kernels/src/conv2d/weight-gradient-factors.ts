import type { BlockFactors, BlockLoads, FactorQuads, LoadRegisters } from "../matmul/block.js";
import { groupColumns } from "./group-columns.js";
import { farAway, type PlaceType, placeType, sourceQuad } from "./source-quad.js";
import { partOfPixels, type WeightGradientLayout } from "./weight-gradient.js";

/**
 * The product of `weightGradientContraction()` by blocks. Before the loop over k, an invocation decodes the tap and channel of its rows,
 * and the pixels of its loads; in the loop it moves the pixels by additions.
 */
export function weightGradientFactors(
  width: 2 | 4,
  { isQuads, isAligned }: WeightGradientLayout,
): BlockFactors {
  const type = placeType(isQuads);
  const right = groupColumns("gradient", width, isAligned);
  return {
    functions: sourceQuad(type) + right.functions,
    range: () => `  let channel_group = slice / s.splits;
${partOfPixels}  let k_end = min(pixels, end * 4u);
`,
    hasRowSums: false,
    left: rowsOfTaps(type),
    right: right.quads,
  };
}

/** Rows are taps × channels: all loads share the offset of their tap and channel, and a load has its own pixel. */
function rowsOfTaps(type: PlaceType): FactorQuads {
  const registers = ({ count, depth, line, quad }: BlockLoads): LoadRegisters => {
    const [row, channels] =
      type === "u32"
        ? [quad(0), "s.channels >> 2u"]
        : [`(${quad(0)}) * 4u + vec4u(0u, 1u, 2u, 3u)`, "s.channels"];
    let before = `  let channels = ${channels};
  let tap_row = ${row};
  let tap = tap_row / channels;
  let tap_y = tap / s.kernel_width * s.dilation_y - s.padding_y;
  let tap_x = tap % s.kernel_width * s.dilation_x - s.padding_x;
  let pitch = channels * s.groups;
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
    along: "across",
    isBounded: true,
    registers,
    of: (pixel, _quad, i) =>
      `source_quad(((pixel${i}_image + pixel${i}_y) * s.source_width + pixel${i}_x) * pitch + tap_at, select(${farAway}, pixel${i}_y, ${pixel} < k_end) + tap_y, pixel${i}_x + tap_x)`,
  };
}
