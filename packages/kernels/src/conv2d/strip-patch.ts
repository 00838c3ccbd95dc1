import { quadType, scalarType } from "../domain.js";
import { indexingWgsl } from "../indexing.js";
import { linearWorkgroups } from "../kernel.js";
import type { Epilogue } from "../woven-definition.js";
import { type Direction, each, lanes, type Patch, paddingOf, patchHead } from "./patch.js";

export interface StripShape {
  /** Channels of the source: few. */
  readonly channels: number;
  /** Columns of the result that a lane computes: a multiple of four that divides their number. */
  readonly columns: number;
}

/**
 * Strips of pixels of images of few channels: a subgroup moves down a strip of eight neighbouring pixels, and each lane computes a
 * block of columns of one pixel. All weights of the block are broadcast to all lanes first, and stay for several strips. A step loads
 * one line: each lane its own pixel, and two lanes the pixels beside the strip. The lanes take the pixels of one line of all images
 * in sequence, so that any width fills them; the border of at least one column of zeros separates images. Forward sums keep the order
 * of tiles.
 */
export const stripPatch = (shape: StripShape, direction: Direction): Patch => ({
  name: `strip${shape.channels}x${shape.columns}`,
  movesQuads: true,
  program: (_, epilogue) => stripProgram(shape, direction, epilogue),
  workgroups(scalars) {
    const { n, images, target_height, target_width } = scalars as Record<
      "n" | "images" | "target_height" | "target_width",
      number
    >;
    const blocks = n / shape.columns;
    const pieces = Math.ceil((images * target_width) / lanes) * Math.ceil(target_height / longest);
    const walk = Math.floor((pieces * blocks) / enoughWalks);
    return linearWorkgroups(
      blocks * Math.ceil(pieces / Math.min(Math.max(walk, 1), longestWalk)),
      1,
    );
  },
});

/** Lines of a piece of a strip; a piece loads two more. */
const longest = 32;

/** Pieces that a subgroup computes with the same weights, where enough subgroups remain to keep a device busy. */
const longestWalk = 8;
const enoughWalks = 64;

function stripProgram(
  { channels, columns }: StripShape,
  direction: Direction,
  epilogue?: Epilogue,
): string {
  const padding = (axis: "x" | "y"): string => paddingOf(direction, axis);
  // Weights are [tap, channels, columns], and those of a turned window [tap, columns, channels].
  const place =
    direction === "forward"
      ? `at / ${columns}u * s.n + quad * 4u + at % ${columns}u`
      : `((8u - at / ${columns * channels}u) * s.n + quad * 4u + at % ${columns}u) * ${channels}u + at / ${columns}u % ${channels}u`;
  // Numbers under a window, and under one of its lines.
  const depth = 9 * channels;
  const across = 3 * channels;
  const registersOfChannel = Math.ceil((9 * columns) / lanes);
  const weight = (k: number, column: number): string => {
    const at = k * columns + column;
    return `  let w${k}_${column} = subgroupShuffle(weights[${Math.floor(at / lanes)}], ${at % lanes}u);\n`;
  };
  // Tap by tap, so that a number under the window is multiplied by four weights while in a register.
  const addTap = (k: number, columns: readonly number[]): string =>
    columns
      .map((column) => {
        const [value, factor] = [`v${Math.floor(k / across)}_${k % across}`, `w${k}_${column}`];
        return k === 0
          ? `        let sum${column}_0 = ${value} * ${factor};\n`
          : `        let sum${column}_${k} = fma(${value}, ${factor}, sum${column}_${k - 1});\n`;
      })
      .join("");
  const finish = quadsThrough(columns / 4, epilogue);
  const storeQuad = (q: number): string => {
    const four = [0, 1, 2, 3].map((e) => 4 * q + e);
    return `      {
        let at = first_quad + ${q}u;
${each(depth, (k) => addTap(k, four))}        let result = vec4f(${four.map((column) => `sum${column}_${depth - 1}`).join(", ")});
        store_out(at, ${finish.call("result", q)});
      }
`;
  };
  return `${finish.functions}
${patchHead}  let blocks = s.n / ${columns}u;
  let quad = tile % blocks * ${columns / 4}u;
  var weights: array<f32, ${channels * registersOfChannel}>;
  // Drivers write out a loop whose number of rounds they know.
  for (var i = 0u; i < s.channels * ${registersOfChannel}u; i++) {
    let at = i * ${lanes}u + lane;
    weights[i] = at_weight(${place});
  }
${each(depth, (k) => each(columns, (column) => weight(k, column)))}${finish.before}
  let last = ${lanes - 1}u;
  let before = (lane + last) % ${lanes}u;
  let after = (lane + 1u) % ${lanes}u;
  let high = (s.target_height + ${longest - 1}u) / ${longest}u;
  let pieces = (s.images * s.target_width + last) / ${lanes}u * high;
  let walk = clamp(pieces * blocks / ${enoughWalks}u, 1u, ${longestWalk}u);
  let begin = tile / blocks * walk;
  for (var piece = begin; piece < min(begin + walk, pieces); piece++) {
    let place = piece / high * ${lanes}u + lane;
    let image = place / s.target_width;
    let in_images = image < s.images;
    let x = place % s.target_width;
    let first = image * s.source_height * s.source_width + x - ${padding("x")};
${each(3, (tap) => `    let inside${tap} = in_images & (x + ${tap}u - ${padding("x")} < s.source_width);\n`)}
    // The last lane loads what lies before the first one's pixel, and the first lane what lies behind the last one's.
    let beside = subgroupShuffle(select(first, first + 2u, lane == last), last - lane);
    let has_beside = subgroupShuffle(u32(select(inside0, inside2, lane == last)), last - lane);
    let loads_beside = has_beside == 1u && (lane == 0u || lane == last);
    let top = piece % high * ${longest}u;
${windowLine(`top - ${padding("y")}`, "a0", channels)}${windowLine(`top + 1u - ${padding("y")}`, "a1", channels)}
${each(across, (i) => `    var v0_${i} = a0_${i};\n    var v1_${i} = a1_${i};\n`)}
    for (var y = top; y < min(top + ${longest}u, s.target_height); y++) {
${windowLine(`y + 2u - ${padding("y")}`, "v2", channels)}
      if (in_images) {
        let first_quad = ((image * s.target_height + y) * s.target_width + x) * (s.n >> 2u) + quad;
${each(columns / 4, storeQuad)}      }
${each(across, (i) => `      v0_${i} = v1_${i};\n      v1_${i} = v2_${i};\n`)}    }
  }
}
`;
}

/** WGSL: declares `name`_0 …, the part of line `y` of the source under the window of each lane: three pixels of so many channels. */
const windowLine = (y: string, name: string, channels: number): string => `
    let ${name}_y = ${y};
    let ${name}_inside = ${name}_y < s.source_height;
    let ${name}_has = ${name}_inside & inside1;
    let ${name}_at = select(0u, (first + 1u + ${name}_y * s.source_width) * ${channels}u, ${name}_has);
${each(
  channels,
  (c) => `    let ${name}_own${c} = select(0.0, at_source(${name}_at + ${c}u), ${name}_has);
    var ${name}_beside${c} = 0.0;
`,
)}    if (${name}_inside && loads_beside) {
      let at = (beside + ${name}_y * s.source_width) * ${channels}u;
${each(channels, (c) => `      ${name}_beside${c} = at_source(at + ${c}u);\n`)}    }
${each(channels, (c) => {
  const neighbour = (side: "last" | "0u", from: "before" | "after"): string =>
    `subgroupShuffle(select(${name}_own${c}, ${name}_beside${c}, lane == ${side}), ${from})`;
  return `    let ${name}_left${c} = ${neighbour("last", "before")};
    let ${name}_right${c} = ${neighbour("0u", "after")};
    let ${name}_${c} = select(0.0, ${name}_left${c}, inside0);
    let ${name}_${channels + c} = ${name}_own${c};
    let ${name}_${2 * channels + c} = select(0.0, ${name}_right${c}, inside2);
`;
})}`;

/** WGSL that passes quad `at` of the result, which is the lane's quad `q` of so many, through the epilogue if there is one. */
function quadsThrough(quads: number, epilogue: Epilogue | undefined) {
  let functions = epilogue?.functions ?? "";
  let before = "";
  const operands = (epilogue?.operands ?? []).map(({ name, kind, domain }) => {
    const [type, scalar] = [quadType(domain), scalarType(domain)];
    switch (kind) {
      case "row":
        before += each(quads, (q) => `  let ${name}_${q} = ${type}(load_${name}(quad + ${q}u));\n`);
        return (q: number) => `${name}_${q}`;
      case "scalar":
        before += `  let ${name}_all = ${type}(${scalar}(at_${name}(0u)));\n`;
        return () => `${name}_all`;
      case "same":
        return () => `${type}(load_${name}(at))`;
      default: {
        functions += indexingWgsl(kind, name, domain);
        const elements = [0, 1, 2, 3].map(
          (e) => `${scalar}(at_${name}(offset_${name}(at * 4u + ${e}u)))`,
        );
        return () => `${type}(${elements.join(", ")})`;
      }
    }
  });
  return {
    functions,
    before,
    call: (result: string, q: number): string =>
      epilogue?.call(
        result,
        operands.map((operand) => operand(q)),
        "at",
      ) ?? result,
  };
}
