import type { BlockFactors, FactorQuads } from "./block.js";
import type { RowSumsSupport } from "./row-sums.js";
import type { Contraction, Tile, TileShape } from "./tile.js";

/** The static choices of a matrix product. */
export interface MatmulLayout {
  readonly transA: boolean;
  readonly transB: boolean;
  /** m is a multiple of 4; used for a transposed left operand only. */
  readonly isAlignedM: boolean;
  /** n is a multiple of the tile's width. */
  readonly isAlignedN: boolean;
  /** k is a multiple of 4. */
  readonly isAlignedK: boolean;
  /** Elements of which the rows of the operands in memory consist; used by blocks only. */
  readonly groupA: 1 | 4 | 8;
  readonly groupB: 1 | 4 | 8;
  /** To also add up the rows of a transposed left operand. */
  readonly rowSums: RowSumsSupport | undefined;
}

/** op(a) · op(b). Rows and columns past the end load arbitrary elements and are never stored. */
export function matmulContraction({ width }: TileShape, layout: MatmulLayout): Contraction {
  const { transA, transB } = layout;
  const left = ({ rows, registers }: Tile): string =>
    registers
      .map(({ name, part }) => {
        const quads = rows / 4;
        const position = transA
          ? `step * 4u + ${part} / ${quads}u, (row >> 2u) + ${part} % ${quads}u`
          : `row + ${part}, step`;
        return `let ${name} = left(${position}, a_start);\n`;
      })
      .join("");
  return {
    along: transA ? "rows" : "k",
    rowSums: layout.rowSums,
    // Rows of the left factor that fit in a megabyte of cache; where both factors are stored by rows, more are faster.
    band: transA || transB ? "clamp(8192u / max(1u, s.k / s.splits), 1u, 32u)" : "32u",
    functions: leftQuad(layout) + rightQuad(width, layout),
    loops: (tile) => `${rangeOfSlice(1)}  for (var step = begin; step < end; step++) {
${transB ? loadTransposed(width) : loadRows}${left(tile)}${tile.accumulate}  }
`,
  };
}

/** The starts of a slice's factors, and its quads of k, in whole steps of `grain` of them. */
const rangeOfSlice = (grain: number): string => `  let batch = slice / s.splits;
  let a_start = batch * s.a_batch;
  let b_start = batch * s.b_batch;
  let steps = (s.k + 3u) >> 2u;
  let depth = ${
    grain === 1
      ? "(steps + s.splits - 1u) / s.splits"
      : `(steps + s.splits * ${grain}u - 1u) / (s.splits * ${grain}u) * ${grain}u`
  };
  let begin = slice % s.splits * depth;
  let end = min(steps, begin + depth);
`;

const rightQuad = (width: 2 | 4, layout: MatmulLayout): string =>
  layout.transB ? rightAlongK(layout) : rightAlongN(layout, width);

/** The same product, of blocks in workgroup memory. */
export const matmulFactors = (width: 2 | 4, layout: MatmulLayout): BlockFactors => ({
  functions: "",
  range: rangeOfSlice,
  rowSums: layout.rowSums,
  left: {
    along: layout.transA ? "across" : "k",
    functions: leftQuad(layout),
    of: (line, quad) => `left(${line}, ${quad}, a_start)`,
    ...copied("a", layout.groupA),
  },
  right: {
    along: layout.transB ? "k" : "across",
    functions: rightQuad(width, layout),
    of: (line, quad) =>
      layout.transB || width === 4
        ? `right(${line}, ${quad}, b_start)`
        : `vec4f(right(${line}, (${quad}) * 2u, b_start), right(${line}, (${quad}) * 2u + 1u, b_start))`,
    ...copied("b", layout.groupB),
  },
});

const copied = (name: "a" | "b", elements: 1 | 4 | 8): Pick<FactorQuads, "copied"> =>
  elements === 1
    ? {}
    : {
        copied: {
          elements,
          start: `${name}_start`,
          stride: `s.${name}_stride`,
          end: "min(end * 4u, s.k)",
          load: (index) => `stored_${name}(${index})`,
        },
      };

const four = (expression: (j: number) => string): string => [0, 1, 2, 3].map(expression).join(", ");

/** `left(row, quad, start)`: four neighbours of a row of `a`, zeros past the end of k. */
function leftQuad({ transA, isAlignedM, isAlignedK }: MatmulLayout): string {
  const head = "fn left(row: u32, quad: u32, start: u32) -> vec4f {";
  if (!transA)
    return isAlignedK
      ? `${head} return load_a((start >> 2u) + row * (s.a_stride >> 2u) + quad); }\n`
      : `fn left_at(at: u32, k: u32) -> f32 { return select(0.0, at_a(at + k), k < s.k); }
${head}
  let at = start + row * s.a_stride;
  let k = quad * 4u;
  return vec4f(${four((j) => `left_at(at, k + ${j}u)`)});
}
`;
  const value = isAlignedM
    ? "load_a((start >> 2u) + row * (s.a_stride >> 2u) + quad)"
    : `vec4f(${four((j) => `at_a(start + row * s.a_stride + quad * 4u + ${j}u)`)})`;
  return `${head} return ${isAlignedK ? value : `select(vec4f(), ${value}, row < s.k)`}; }\n`;
}

/** `right(k, column, start)`: `width` neighbours of row k of `b`, zeros past the end of k. */
function rightAlongN({ isAlignedN, isAlignedK }: MatmulLayout, width: 2 | 4): string {
  const elements = Array.from({ length: width }, (_, j) => `at_b(at + ${j}u)`).join(", ");
  const value = isAlignedN
    ? `load_b(start / ${width}u + k * (s.b_stride / ${width}u) + column)`
    : `vec${width}f(${elements})`;
  return `fn right(k: u32, column: u32, start: u32) -> vec${width}f {
  ${isAlignedN ? "" : `let at = start + k * s.b_stride + column * ${width}u;\n  `}return ${
    isAlignedK ? value : `select(vec${width}f(), ${value}, k < s.k)`
  };
}
`;
}

const loadRows = [0, 1, 2, 3]
  .map((u) => `let b${u} = right(step * 4u + ${u}u, column, b_start);\n`)
  .join("");

/** `right(n, quad, start)`: four neighbours along k of column n, zeros past the end of k. */
const rightAlongK = ({ isAlignedK }: MatmulLayout): string =>
  isAlignedK
    ? `fn right(n: u32, quad: u32, start: u32) -> vec4f {
  return load_b((start >> 2u) + n * (s.b_stride >> 2u) + quad);
}
`
    : `fn right_at(at: u32, k: u32) -> f32 { return select(0.0, at_b(at + k), k < s.k); }
fn right(n: u32, quad: u32, start: u32) -> vec4f {
  let at = start + n * s.b_stride;
  let k = quad * 4u;
  return vec4f(${four((j) => `right_at(at, k + ${j}u)`)});
}
`;

function loadTransposed(width: 2 | 4): string {
  const columns = Array.from({ length: width }, (_, j) => j);
  return (
    columns.map((j) => `let d${j} = right(column * ${width}u + ${j}u, step, b_start);\n`).join("") +
    transposeColumns(width)
  );
}

/** `b0 … b3` from `d0 …`, the four k of each column. */
export const transposeColumns = (width: 2 | 4): string =>
  ["x", "y", "z", "w"]
    .map((member, u) => {
      const columns = Array.from({ length: width }, (_, j) => `d${j}.${member}`);
      return `let b${u} = vec${width}f(${columns.join(", ")});\n`;
    })
    .join("");
