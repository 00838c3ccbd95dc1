import type { DType, ProgramContext } from "@halfstep/device";
import { throughEpilogue } from "../matmul/store.js";
import type { Epilogue } from "../woven-definition.js";
import {
  channelMarks,
  type Direction,
  each,
  lanes,
  type Patch,
  type PatchSize,
  paddingOf,
  patchMain,
  patchWorkgroups,
  quadLoads,
} from "./patch.js";

/** Pieces of lines. */
export interface LineShape extends PatchSize {
  /** Whether pieces are whole lines of the image with one column of zeros on each side: no lane then loads neighbouring pixels. */
  readonly isWhole: boolean;
}

/**
 * Pieces of lines, of which a lane computes four columns. The loop over vertical taps is not unrolled, which keeps the program as short as
 * that of a tile: the pixels of each line are in separate registers and move up one line at each tap. Sums are added channel by channel,
 * within a channel tap by tap. For turned windows in 16 bits they are added by quads of channels, within a quad line by line.
 */
export const linePatch = (shape: LineShape, direction: Direction): Patch => ({
  name: nameOf(shape),
  program: (context, epilogue) => lineProgram(shape, direction, context, epilogue),
  workgroups: (scalars) => patchWorkgroups(shape, scalars),
});

const nameOf = ({ width, height, isWhole }: LineShape): string =>
  `${width}x${height}${isWhole ? "w" : ""}`;

function lineProgram(
  shape: LineShape,
  direction: Direction,
  context: ProgramContext,
  epilogue?: Epilogue,
): string {
  const { height, width, isWhole } = shape;
  const sums = sumsOf(height * width, isArrayFaster(shape, direction, context, epilogue));
  // Lines of the source, and registers of a line: lane i of register g has its pixel 8g + i.
  const lines = height + 2;
  const registers = Math.ceil((isWhole ? width : width + 2) / lanes);
  const grid = { lines, registers };
  const accumulateLine = (line: number): string =>
    each(isWhole ? width : width + 2, (i) => {
      const value = `subgroupShuffle(a${line}_${Math.floor(i / lanes)}, ${i % lanes}u)`;
      return `    let v${line}_${i + (isWhole ? 1 : 0)} = ${value};\n`;
    }) +
    each(width, (x) => {
      let sum = sums.at(line * width + x);
      for (const tap of [0, 1, 2])
        if (!isWhole || (x + tap > 0 && x + tap <= width))
          sum = `fma(vec4f(v${line}_${x + tap}), b${tap}, ${sum})`;
      return `    ${sums.at(line * width + x)} = ${sum};\n`;
    });
  const accumulate = each(height, accumulateLine);
  const isForward = direction === "forward";
  const isByQuads = !isForward && context.bindings[1]?.dtype !== "float32";
  const padding = (axis: "x" | "y"): string => paddingOf(direction, axis);
  const store = throughEpilogue(4, epilogue);
  return `${store.functions}${patchMain(shape)}  let first = (image * s.source_height + top - ${padding("y")}) * s.source_width;
${each(
  registers,
  (g) => `  let x${g} = left + lane + ${g * lanes}u${isWhole ? "" : ` - ${padding("x")}`};
  let inside${g} = x${g} < s.source_width;
`,
)}${eachRegister(
  grid,
  (
    at,
    line,
    g,
  ) => `  let inside${at} = inside${g} & (top + ${line}u - ${padding("y")} < s.source_height);
  let at${at} = select(0u, (first + ${line}u * s.source_width + x${g}) * ${isByQuads ? "(s.channels / 4u)" : "s.channels"}, inside${at});
`,
)}${sums.declarations}
${isByQuads ? turnedLoops(grid, accumulate, context) : channelLoops(grid, accumulate, isForward ? forwardWeight : turnedWeight)}${sums.gather}${store.before}  let right = min(left + ${width}u, s.target_width);
  for (var y = top; y < min(top + ${height}u, s.target_height); y++) {
    for (var x = left; x < right; x++) {
      let at = ((image * s.target_height + y) * s.target_width + x) * s.columns + column;
      let value = ${store.call(`sums[(y - top) * ${width}u + x - left]`)};
      ${sums.store("store_out(at, value);")}
    }
  }
}
`;
}

/** Registers of the source: lane i of register g of a line has its pixel 8g + i. */
interface Grid {
  readonly lines: number;
  readonly registers: number;
}

/** Code for each register, whose name ends with `at`. */
const eachRegister = (
  { lines, registers }: Grid,
  code: (at: string, line: number, g: number) => string,
): string => each(lines, (line) => each(registers, (g) => code(`${line}_${g}`, line, g)));

/** Moves the registers of this name up by one line. */
const moveUp = ({ lines, registers }: Grid, name: string): string =>
  eachRegister(
    { lines: lines - 1, registers },
    (at, line, g) => `    ${name}${at} = ${name}${line + 1}_${g};\n`,
  );

const channelLoops = (
  grid: Grid,
  accumulate: string,
  weight: (tap: number) => string,
): string => `  for (var channel = 0u; channel < s.channels; channel++) {
${eachRegister(grid, (at) => `    var a${at} = select(0.0, at_source(at${at} + channel), inside${at});\n`)}
    for (var ky = 0u; ky < s.kernel_height; ky++) {
${each(3, (tap) => `    let b${tap} = ${weight(tap)};\n`)}
${accumulate}
${moveUp(grid, "a")}    }
  }
`;

const forwardWeight = (tap: number): string =>
  `load_weight(((ky * 3u + ${tap}u) * s.channels + channel) * s.columns + column)`;

const turnedWeight = (tap: number): string =>
  `vec4f(${[0, 1, 2, 3].map((j) => `at_weight(((((2u - ky) * 3u + ${2 - tap}u) * s.columns + column) * 4u + ${j}u) * s.channels + channel)`).join(", ")})`;

/** The weight of a turned window is [tap, columns, channels], so that quads of channels are contiguous. */
function turnedLoops(grid: Grid, accumulate: string, context: ProgramContext): string {
  const source = quadLoads(context, "source");
  const weight = quadLoads(context, "weight");
  const eachWeight = (code: (name: string, tap: number, j: number) => string): string =>
    each(3, (tap) => each(4, (j) => code(`w${tap}_${j}`, tap, j)));
  return `  let quads = s.channels / 4u;
  for (var quad = 0u; quad < quads; quad++) {
${eachRegister(grid, (at) => `    var q${at} = select(${source.zero}, ${source.load(`at${at} + quad`)}, inside${at});\n`)}
    for (var ky = 0u; ky < 3u; ky++) {
${eachWeight((name, tap, j) => `    let ${name} = ${weight.load(`((((2u - ky) * 3u + ${2 - tap}u) * s.columns + column) * 4u + ${j}u) * quads + quad`)};\n`)}
    for (var c = 0u; c < 4u; c++) {
${channelMarks}
${eachRegister({ ...grid, lines: grid.lines - 2 }, (at) => `    let a${at} = ${source.channel(`q${at}`)};\n`)}
${each(3, (tap) => `    let b${tap} = vec4f(${[0, 1, 2, 3].map((j) => weight.channel(`w${tap}_${j}`)).join(", ")});\n`)}
${accumulate}    }
${moveUp(grid, "q")}    }
  }
`;
}

/**
 * Whether an array of sums is faster. With equal instructions in its loop, a program runs on llvmpipe at full speed or at three quarters
 * of it, depending on the alignment of its code. The choices were measured for each storage, forward alone and with a bias, which is
 * loaded before the loop.
 */
function isArrayFaster(
  shape: LineShape,
  direction: Direction,
  { bindings }: ProgramContext,
  epilogue: Epilogue | undefined,
): boolean {
  const dtype = bindings.at(-1)?.dtype ?? "float32";
  if (direction === "backward") return turnedArrays[nameOf(shape)]?.includes(dtype) ?? false;
  if (shape.width === 7) return true;
  const hasRow = epilogue?.operands.some(({ kind }) => kind === "row") ?? false;
  return dtype === "float16" ? !hasRow : dtype === "float32" && hasRow;
}

const turnedArrays: Readonly<Record<string, readonly DType[]>> = {
  "7x7w": ["float32", "float16"],
  "8x8w": ["float32", "float16", "bfloat16"],
  "14x4": ["float16"],
};

/** The sums, in an array from the start or only for their stores. Lanes past the last column store nothing. */
function sumsOf(count: number, isArray: boolean) {
  const names = Array.from({ length: count }, (_, i) => `sum${i}`);
  const arrayOf = (values: string): string => `  var sums = array<vec4f, ${count}>(${values});\n`;
  return isArray
    ? {
        at: (i: number): string => `sums[${i}]`,
        declarations: arrayOf(""),
        gather: "",
        store: (statement: string): string => `if (column < s.columns) { ${statement} }`,
      }
    : {
        at: (i: number): string => `sum${i}`,
        declarations: names.map((name) => `  var ${name} = vec4f();\n`).join(""),
        gather: `  if (column >= s.columns) { return; }\n${arrayOf(names.join(", "))}`,
        store: (statement: string): string => statement,
      };
}
