import { linearWorkgroups } from "../kernel.js";
import { throughEpilogue } from "../matmul/store.js";
import type { Epilogue } from "../woven-definition.js";
import { each, lanes, type Patch, patchHead } from "./patch.js";

/** The part of a weight's gradient that a subgroup computes, and its steps over the pixels. */
interface RunShape {
  /** Input channels. */
  readonly channels: number;
  /** Lines of taps, of three each. */
  readonly lines: 1 | 3;
  /** Pixels of a step. */
  readonly pixels: 2 | 4 | 8;
}

/** A subgroup loads this many numbers of the source at a time, in quads. */
const loaded = 4 * lanes;

/** Parts of k begin at a multiple of this many pixels. */
const partPixels = 8;

/**
 * The gradient by the weight of windows of 3×3 without strides and with one zero on each side: a subgroup iterates over the pixels. It
 * multiplies each number of the source by the gradients of three neighbouring pixels, one for each tap of a line. These gradients shift
 * from register to register. So three taps, or nine, share their loads.
 *
 * @param inChannels fewer than four, or a multiple of sixteen
 */
export function pixelRun(inChannels: number, width: 2 | 4): Patch {
  const shape = shapeOf(inChannels, width);
  return {
    name: `run${shape.channels}`,
    program: (_, epilogue) => runProgram(shape, width, epilogue),
    workgroups: ({ columns, channels, slices }) => {
      const across = Math.ceil((columns as number) / lanes);
      const blocks = (channels as number) / shape.channels;
      return linearWorkgroups((across * blocks * 3 * (slices as number)) / shape.lines, 1);
    },
  };
}

/** As many sums as keep the loop within the instruction cache. */
function shapeOf(inChannels: number, width: 2 | 4): RunShape {
  if (inChannels < 4) return { channels: inChannels, lines: 3, pixels: 8 };
  return inChannels % 32 === 0 && width === 4
    ? { channels: 32, lines: 1, pixels: 2 }
    : { channels: 16, lines: 1, pixels: 4 };
}

function runProgram(shape: RunShape, width: 2 | 4, epilogue: Epilogue | undefined): string {
  const { channels, lines, pixels } = shape;
  const vector = `vec${width}f`;
  const sum = (line: number, tap: number, channel: number): string =>
    `sum${(line * 3 + tap) * channels + channel}`;
  const source = lines === 1 ? quadsOf(shape) : elementsOf(shape);
  // Of the three taps of a line, the first multiplies the gradient of the next pixel, and the last that of the previous one.
  const factor = ["after", "d", "before"];
  const accumulate = each(lines, (line) =>
    each(
      channels,
      (channel) =>
        `    {${each(pixels, (u) => ` let v${u} = ${source.value(line, channel, u)};`)}\n${each(
          3,
          (tap) => {
            let value = sum(line, tap, channel);
            for (let u = 0; u < pixels; u++)
              value = `fma(${vector}(v${u}), ${factor[tap]}${u}, ${value})`;
            return `    ${sum(line, tap, channel)} = ${value};\n`;
          },
        )}    }\n`,
    ),
  );
  const store = storeRuns(shape, width, epilogue);
  return `${store.functions}
${patchHead}  let across = (s.columns + ${lanes - 1}u) / ${lanes}u;
  let column = tile % across * ${lanes}u + lane;
  let blocks = s.channels / ${channels}u;
  let block = tile / across % blocks;
  let ky = ${lines === 1 ? "tile / across / blocks % 3u" : "0u"};
  let slice = tile / (across * blocks * ${3 / lines}u);
  if (slice >= s.slices) { return; }
  let image = s.target_height * s.target_width;
  let pixels = s.images * image;
  let steps = (pixels + ${partPixels - 1}u) / ${partPixels}u;
  let depth = (steps + s.splits - 1u) / s.splits * ${partPixels}u;
  let begin = slice * depth;
  let end = min(steps * ${partPixels}u, begin + depth);
  let last = pixels * s.columns - 1u;
  var x = begin % s.target_width;
  var at = (begin + 1u) * s.columns + column;
  var d_before = load_gradient(min(at - 2u * s.columns, last));
  var d_next = load_gradient(min(at - s.columns, last));
  var turned = x == 0u;
${source.before}${each(lines * 3 * channels, (i) => `  var sum${i} = ${vector}();\n`)}
  for (var p = begin; p < end; p += ${pixels}u) {
    let d0 = d_next;
    let before0 = select(d_before, ${vector}(), turned);
${each(
  pixels,
  (u) => `    let turned${u} = x == s.target_width - ${u + 1}u;
    let d${u + 1} = load_gradient(min(at + ${u}u * s.columns, last));
    let after${u} = select(d${u + 1}, ${vector}(), turned${u});
    let before${u + 1} = select(d${u}, ${vector}(), turned${u});
`,
)}${source.load}${accumulate}    d_before = d${pixels - 1};
    d_next = d${pixels};
    turned = turned${pixels - 1};
    at += ${pixels}u * s.columns;
    x += ${pixels}u;
    x -= select(0u, s.target_width, x >= s.target_width);
  }
  if (column >= s.columns) { return; }
${store.statements}}
`;
}

/** WGSL that loads the pixels under a line of taps, with zeros beside the image. */
interface SourceCode {
  readonly before: string;
  readonly load: string;
  value(line: number, channel: number, pixel: number): string;
}

/** A register holds all channels of one or two pixels. */
function quadsOf({ channels, pixels }: RunShape): SourceCode {
  const together = loaded / channels;
  const quads = channels / 4;
  const count = pixels / together;
  return {
    before: `  let shift = (ky - 1u) * s.target_width;
  let pitch = s.channels >> 2u;
${each(
  count,
  (g) => `  let ahead${g} = lane / ${quads}u + ${g * together}u;
  var place${g} = (begin + ahead${g}) % image;
  var at${g} = (begin + ahead${g} + shift) * pitch + block * ${quads}u + lane % ${quads}u;
`,
)}`,
    load: each(
      count,
      (g) => `    let inside${g} = (place${g} + shift < image) & (p + ahead${g} < pixels);
    let a${g} = select(vec4f(), load_source(select(0u, at${g}, inside${g})), inside${g});
    at${g} += ${pixels}u * pitch;
    place${g} += ${pixels}u;
    place${g} -= select(0u, image, place${g} >= image);
`,
    ),
    value: (_, channel, pixel) =>
      `subgroupShuffle(a${Math.floor(pixel / together)}[${channel % 4}], ${
        (pixel % together) * quads + Math.floor(channel / 4)
      }u)`,
  };
}

/** A register holds one channel of eight pixels of one line. */
const elementsOf = ({ channels, lines, pixels }: RunShape): SourceCode => ({
  before: "  var place = (begin + lane) % image;\n",
  load: `${each(
    lines,
    (line) => `    let shift${line} = ${line}u * s.target_width - s.target_width;
    let inside${line} = (place + shift${line} < image) & (p + lane < pixels);
    let at${line} = select(0u, (p + lane + shift${line}) * ${channels}u, inside${line});
${each(
  channels,
  (channel) =>
    `    let a${line}_${channel} = select(0.0, at_source(at${line} + ${channel}u), inside${line});\n`,
)}`,
  )}    place += ${pixels}u;
    place -= select(0u, image, place >= image);
`,
  value: (line, channel, pixel) => `subgroupShuffle(a${line}_${channel}, ${pixel}u)`,
});

/**
 * Stores the sums. Their rows are contiguous over all taps of few channels, and within each tap of more. Loops count rows of the result,
 * because drivers unroll loops from zero to a constant.
 */
function storeRuns(
  { channels, lines }: RunShape,
  width: 2 | 4,
  epilogue: Epilogue | undefined,
): { readonly functions: string; readonly statements: string } {
  const rows = lines === 1 ? channels : 9 * channels;
  const runs = lines === 1 ? 3 : 1;
  // Programs compute quads, so that pairs are processed two rows at a time.
  const together = epilogue ? 4 / width : 1;
  const stored = Math.ceil(rows / together);
  const vector = `vec${width}f`;
  const sums = Array.from({ length: runs }, (_, run) =>
    Array.from({ length: stored }, (_, i) => {
      const at = (row: number): string => (row < rows ? `sum${run * rows + row}` : `${vector}()`);
      return together === 1 ? at(i) : `vec4f(${at(2 * i)}, ${at(2 * i + 1)})`;
    }),
  ).flat();
  const { functions, before, call } = throughEpilogue(width, epilogue);
  const store =
    together === 1
      ? "store_out(at, value);"
      : "store_out(at, value.xy);\n      if (row + 1u < bottom) { store_out(at + s.columns, value.zw); }";
  return {
    functions,
    statements: `  var sums = array<vec${width * together}f, ${sums.length}>(${sums.join(", ")});
${before}  for (var run = 0u; run < ${runs === 1 ? "1u" : "s.kernel_width"}; run++) {
    let top = (ky * 3u + run) * s.channels + block * ${channels}u;
    let bottom = top + ${rows}u;
    for (var row = top; row < bottom; row += ${together}u) {
      let at = (slice * s.m + row) * s.columns + column;
      let value = ${call(`sums[run * ${stored}u + (row - top) / ${together}u]`)};
      ${store}
    }
  }
`,
  };
}
