import type { ProgramContext } from "@halfstep/device";
import { pairType, quadType, scalarType } from "../domain.js";
import { indexingWgsl } from "../indexing.js";
import type { Epilogue } from "../woven-definition.js";
import {
  channelMarks,
  each,
  lanes,
  type Patch,
  type PatchSource,
  paddingOf,
  patchMain,
  patchWorkgroups,
  quadLoads,
} from "./patch.js";

/** Lines, and columns, of the pixels that a subgroup computes. */
export type SquareSize = 7 | 8;

/** Squares of pixels, of which a lane computes two columns. */
export const squarePatch = (size: SquareSize, source: PatchSource): Patch => ({
  name: `${size}x${size}`,
  program: (context, epilogue) => squareProgram(size, source, context, epilogue),
  workgroups: (scalars) => patchWorkgroups({ height: size, width: size }, scalars),
});

/**
 * A convolution by 3×3 windows without strides, of which a lane computes two columns: a subgroup loads the pixels under all windows of a
 * square, one channel at a time. Each number of the image is loaded once for the nine taps, so most loads are those of weights. Sums are
 * added channel by channel, within a channel tap by tap.
 */
function squareProgram(
  size: SquareSize,
  source: PatchSource,
  context: ProgramContext,
  epilogue?: Epilogue,
): string {
  const side = size + 2;
  const registers = Math.ceil((side * side) / lanes);
  const pixel = (line: number, column: number): string => {
    const at = line * side + column;
    return `  let v${line}_${column} = subgroupShuffle(a${Math.floor(at / lanes)}, ${at % lanes}u);\n`;
  };
  // The weights of one column stay in registers for all pixels.
  const accumulate = (member: "x" | "y"): string =>
    each(size * size, (i) => {
      const [line, column] = [Math.floor(i / size), i % size];
      let sum = `sum${i}${member}`;
      for (let tap = 0; tap < 9; tap++)
        sum = `fma(v${line + Math.floor(tap / 3)}_${column + (tap % 3)}, b${tap}.${member}, ${sum})`;
      return `  sum${i}${member} = ${sum};\n`;
    });
  const channels = source.isQuads
    ? channelsOfQuads(registers, source, context)
    : eachChannel(registers);
  const pitch = source.isQuads ? "(s.channels / 4u)" : "s.channels";
  const store = pairsThrough(epilogue);
  const sums = Array.from({ length: size * size }, (_, i) => `vec2f(sum${i}x, sum${i}y)`);
  return `${store.functions}${patchMain({ height: size, width: size })}${each(
    registers,
    (
      g,
    ) => `  let y${g} = top + (lane + ${g * lanes}u) / ${side}u - ${paddingOf(source.direction, "y")};
  let x${g} = left + (lane + ${g * lanes}u) % ${side}u - ${paddingOf(source.direction, "x")};
  let inside${g} = (y${g} < s.source_height) & (x${g} < s.source_width);
  let at${g} = select(0u, ((image * s.source_height + y${g}) * s.source_width + x${g}) * ${pitch}, inside${g});
`,
  )}${each(size * size, (i) => `  var sum${i}x = 0.0;\n  var sum${i}y = 0.0;\n`)}
${channels.before}
${each(side * side, (i) => pixel(Math.floor(i / side), i % side))}
${accumulate("x")}${accumulate("y")}${channels.after}  if (column >= s.columns) { return; }
  // One more, for the pair of the last pixel of an odd number.
  var sums = array<vec2f, ${size * size + 1}>(${sums.join(", ")}, vec2f());
  let right = min(left + ${size}u, s.target_width);
${store.before}  for (var y = top; y < min(top + ${size}u, s.target_height); y++) {
    for (var x = left; x < right; x += 2u) {
      let at = ((image * s.target_height + y) * s.target_width + x) * s.columns + column;
      let i = (y - top) * ${size}u + x - left;
      let value = ${store.call("vec4f(sums[i], sums[i + 1u])")};
      store_out(at, value.xy);
      if (x + 1u < right) { store_out(at + s.columns, value.zw); }
    }
  }
}
`;
}

/**
 * Code before and after the statements for a `channel`. In the statements, register `a…` of this invocation has a pixel, and `b0` to
 * `b8` have the weights of its columns.
 */
interface ChannelLoop {
  readonly before: string;
  readonly after: string;
}

const forwardWeights: string = each(
  9,
  (tap) => `  let b${tap} = load_weight((${tap}u * s.channels + channel) * s.columns + column);\n`,
);

const eachChannel = (registers: number): ChannelLoop => ({
  before: `  for (var channel = 0u; channel < s.channels; channel++) {
${each(registers, (g) => `  let a${g} = select(0.0, at_source(at${g} + channel), inside${g});\n`)}${forwardWeights}`,
  after: "  }\n",
});

/** Loads four channels at once, with half as many words in 16-bit formats, and extracts them one by one. */
function channelsOfQuads(
  registers: number,
  { direction }: PatchSource,
  context: ProgramContext,
): ChannelLoop {
  const source = quadLoads(context, "source");
  const weight = quadLoads(context, "weight");
  // The weight of a turned window is [tap, columns, channels].
  const turned = (tap: number, j: number): string =>
    `((${8 - tap}u * s.columns + column) * 2u + ${j}u) * (s.channels / 4u) + quad`;
  const [quads, weights] =
    direction === "forward"
      ? ["", forwardWeights]
      : [
          each(
            9,
            (tap) =>
              `  let w${tap}_0 = ${weight.load(turned(tap, 0))};\n  let w${tap}_1 = ${weight.load(turned(tap, 1))};\n`,
          ),
          each(
            9,
            (tap) =>
              `  let b${tap} = vec2f(${weight.channel(`w${tap}_0`)}, ${weight.channel(`w${tap}_1`)});\n`,
          ),
        ];
  return {
    before: `  for (var quad = 0u; quad < s.channels / 4u; quad++) {
${each(registers, (g) => `  let q${g} = select(${source.zero}, ${source.load(`at${g} + quad`)}, inside${g});\n`)}${quads}
  for (var c = 0u; c < 4u; c++) {
  let channel = quad * 4u + c;
${channelMarks}${each(registers, (g) => `  let a${g} = ${source.channel(`q${g}`)};\n`)}${weights}`,
    after: "  }\n  }\n",
  };
}

/** The epilogue of two pixels at a time, with pairs at `at` and `at + s.columns`. */
function pairsThrough(epilogue: Epilogue | undefined): {
  readonly functions: string;
  readonly before: string;
  call(value: string): string;
} {
  let functions = epilogue?.functions ?? "";
  let before = "";
  const operands = (epilogue?.operands ?? []).map(({ name, kind, domain }) => {
    const [quad, pair, scalar] = [quadType(domain), pairType(domain), scalarType(domain)];
    switch (kind) {
      case "row":
        before += `  let ${name}_all = ${quad}(${pair}(load_${name}(column)), ${pair}(load_${name}(column)));\n`;
        return `${name}_all`;
      case "scalar":
        before += `  let ${name}_all = ${quad}(${scalar}(at_${name}(0u)));\n`;
        return `${name}_all`;
      case "same":
        return `${quad}(${pair}(load_${name}(at)), ${pair}(load_${name}(at + s.columns)))`;
      default: {
        functions += indexingWgsl(kind, name, domain);
        const elements = ["at", "(at + s.columns)"].flatMap((place) =>
          [0, 1].map((e) => `${scalar}(at_${name}(offset_${name}(${place} * 2u + ${e}u)))`),
        );
        return `${quad}(${elements.join(", ")})`;
      }
    }
  });
  return {
    functions,
    before,
    call: (value) => epilogue?.call(value, operands) ?? value,
  };
}
