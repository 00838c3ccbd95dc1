import type { ProgramContext } from "@halfstep/device";
import type { Epilogue } from "../definition.js";
import { throughEpilogue } from "../matmul/store.js";
import { lanes, type Patch, type PatchSize, patchMain, patchWorkgroups } from "./patch.js";

/** Pieces of lines. */
export interface LineShape extends PatchSize {
  /** Lines are those of the image, with one column of zeros on each side: no lane loads what lies beside them. */
  readonly isWhole: boolean;
}

/**
 * Pieces of lines, of which a lane computes four columns. The loop over vertical taps is not written out, which keeps the program
 * as long as that of a tile: the pixels of each line lie in registers of their own, and move up one line at each tap.
 * Sums are added up channel by channel, in each tap by tap.
 */
export const linePatch = (shape: LineShape): Patch => ({
  name: `${shape.width}x${shape.height}${shape.isWhole ? "w" : ""}`,
  program: (context, epilogue) => lineProgram(shape, context, epilogue),
  workgroups: (scalars) => patchWorkgroups(shape, scalars),
});

function lineProgram(shape: LineShape, context: ProgramContext, epilogue?: Epilogue): string {
  const { height, width, isWhole } = shape;
  const sums = sumsOf(height * width, isArrayFaster(context, epilogue));
  // Lines of the source, and registers of a line: lane i of register g holds its pixel 8g + i.
  const lines = height + 2;
  const registers = Math.ceil((isWhole ? width : width + 2) / lanes);
  const each = (count: number, code: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => code(i)).join("");
  const eachRegister = (count: number, code: (line: number, g: number) => string): string =>
    each(count, (line) => each(registers, (g) => code(line, g)));
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
  const store = throughEpilogue(4, epilogue);
  return `${store.functions}${patchMain(shape)}  let first = (image * s.source_height + top - s.padding_y) * s.source_width;
${each(
  registers,
  (g) => `  let x${g} = left + lane + ${g * lanes}u${isWhole ? "" : " - s.padding_x"};
  let inside${g} = x${g} < s.source_width;
`,
)}${eachRegister(
  lines,
  (
    line,
    g,
  ) => `  let inside${line}_${g} = inside${g} && top + ${line}u - s.padding_y < s.source_height;
  let at${line}_${g} = select(0u, (first + ${line}u * s.source_width + x${g}) * s.channels, inside${line}_${g});
`,
)}${sums.declarations}
  for (var channel = 0u; channel < s.channels; channel++) {
${eachRegister(lines, (line, g) => `    var a${line}_${g} = select(0.0, at_source(at${line}_${g} + channel), inside${line}_${g});\n`)}
    for (var ky = 0u; ky < s.kernel_height; ky++) {
${each(3, (tap) => `    let b${tap} = load_weight(((ky * 3u + ${tap}u) * s.channels + channel) * s.columns + column);\n`)}
${each(height, accumulateLine)}
${eachRegister(lines - 1, (line, g) => `    a${line}_${g} = a${line + 1}_${g};\n`)}    }
  }
${sums.gather}${store.before}  let right = min(left + ${width}u, s.target_width);
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

/**
 * Which form of the sums lies well: with equal instructions in its loop, a program runs at full speed on llvmpipe or at three quarters of
 * it, as its code happens to lie. Found by measuring each storage, alone and with a bias, which is loaded before the loop.
 */
function isArrayFaster({ bindings }: ProgramContext, epilogue: Epilogue | undefined): boolean {
  const hasRow = epilogue?.operands.some(({ kind }) => kind === "row") ?? false;
  const dtype = bindings.at(-1)?.dtype;
  return dtype === "float16" ? !hasRow : dtype === "float32" && hasRow;
}

/** The sums, which lie in an array when they are stored, or from the start. Lanes past the last column store nothing. */
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
