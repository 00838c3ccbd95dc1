import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineWovenKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import type { RowsAttributes } from "../softmax.js";
import {
  byRowOwner,
  byRowProgramWalk,
  type RowOwner,
  type RowProgramWalk,
  type RowStatistic,
  rowOwner,
  rowProgram,
  rowProgramWalk,
  rowProgramWorkgroups,
  rowsUseSubgroups,
  streamsRows,
} from "../wgsl/row-program.js";
import { expOf } from "../wgsl/transcendental.js";

/** Shape and rule of attention whose probabilities are computed as a tensor of queries × keys. */
export interface AttentionProbabilitiesAttributes extends RowsAttributes {
  /** Factor of the scores. */
  readonly scale: number;
  /** Rows of each entry under a causal mask: row r reads columns 0 … r modulo this number only. Default: all columns. */
  readonly causalRows?: number | undefined;
}

/**
 * probabilities = softmax(scores · scale) along each row, over the columns that a causal mask leaves. A row of −∞ only, without
 * visible columns, becomes zeros.
 */
export function attentionProbabilities<B>(
  operands: { readonly scores: Binding<B>; readonly probabilities: Binding<B> },
  { rows, columns, scale, causalRows = 0 }: AttentionProbabilitiesAttributes,
): Launch<B> {
  requireLengths("attentionProbabilities", operands, {
    scores: rows * columns,
    probabilities: rows * columns,
  });
  return {
    kernel: forwardKernels[rowProgramWalk(columns)][rowOwner(columns)],
    bindings: [operands.scores, operands.probabilities],
    scalars: { rows, columns, scale, causalRows },
  };
}

/** scoresGradient = probabilities · (gradient − Σ probabilities · gradient) · scale along each row. */
export function attentionProbabilitiesBackward<B>(
  operands: {
    readonly probabilities: Binding<B>;
    readonly gradient: Binding<B>;
    readonly scoresGradient: Binding<B>;
  },
  { rows, columns, scale }: Omit<AttentionProbabilitiesAttributes, "causalRows">,
): Launch<B> {
  const length = rows * columns;
  requireLengths("attentionProbabilitiesBackward", operands, {
    probabilities: length,
    gradient: length,
    scoresGradient: length,
  });
  const { probabilities, gradient, scoresGradient } = operands;
  return {
    kernel: backwardKernels[rowProgramWalk(columns)][rowOwner(columns)],
    bindings: [probabilities, gradient, scoresGradient],
    scalars: { rows, columns, scale },
  };
}

const shapeScalars = [
  { name: "rows", type: "u32" },
  { name: "columns", type: "u32" },
  { name: "scale", type: "f32" },
] as const;

// WGSL has no constant −∞. Its exponential relative to any finite maximum is 0; the maximum of a row of −∞ only counts as
// finite.
const functions = /* wgsl */ `${expOf("row_exp")}
fn allowed(score: vec4f, row: vec4u, column: vec4u) -> vec4f {
  let minus_infinity = bitcast<vec4f>((min(column, vec4u(1u)) & vec4u(0u)) | vec4u(0xff800000u));
  let hidden = vec4<bool>(s.causalRows != 0u) & (column > row % max(s.causalRows, 1u));
  return select(score * s.scale, minus_infinity, hidden);
}
fn origin(top: vec4f) -> vec4f { return max(top, vec4f(-3.4e38)); }
`;

const forwardKernel = (walk: RowProgramWalk, owner: RowOwner): Kernel => {
  // The place of each input while a row is folded.
  const placeAt = (j: string): string =>
    walk === "lanes"
      ? `row, vec4u(${j})`
      : `vec4u(index), vec4u(${j} * 4u) + vec4u(0u, 1u, 2u, 3u)`;
  const statistics: readonly RowStatistic[] = [
    {
      name: "top",
      fold: "max",
      value: (load, j) => `allowed(${load("scores")}, ${placeAt(j)})`,
    },
    {
      name: "total",
      fold: "sum",
      value: (load, j) => `row_exp(allowed(${load("scores")}, ${placeAt(j)}) - origin(top))`,
    },
  ];
  return defineWovenKernel({
    name: "attentionProbabilities",
    epilogue: "store",
    variant: `${walk}, ${owner}`,
    bindings: [
      { name: "scores", access: "read" },
      { name: "probabilities", access: "write" },
    ],
    scalars: [...shapeScalars, { name: "causalRows", type: "u32" }],
    streams: streamsRows(walk, "scores", "probabilities"),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    body: (context, _, quads) =>
      functions +
      rowProgram(
        walk,
        statistics,
        (load) =>
          `row_exp(allowed(${load("scores")}, row, column) - origin(top)) / select(total, vec4f(1.0), total == vec4f(0.0))`,
        "probabilities",
        owner,
        context,
        quads,
      ),
    workgroups: ({ rows }, _, context) =>
      rowProgramWorkgroups(walk, rows as number, owner, context),
    reference([scores, probabilities], scalars) {
      const { rows, columns, scale, causalRows } = scalars as Readonly<
        Record<"rows" | "columns" | "scale" | "causalRows", number>
      >;
      const [x, p] = [scores, probabilities] as [KernelView, KernelView];
      for (let row = 0; row < rows; row++) {
        const visible = causalRows === 0 ? columns : Math.min(columns, (row % causalRows) + 1);
        const start = row * columns;
        let top = -3.4e38;
        for (let c = 0; c < visible; c++) top = Math.max(top, (x[start + c] as number) * scale);
        let total = 0;
        for (let c = 0; c < visible; c++) total += Math.exp((x[start + c] as number) * scale - top);
        for (let c = 0; c < columns; c++) {
          const weight = c < visible ? Math.exp((x[start + c] as number) * scale - top) : 0;
          p[start + c] = total === 0 ? 0 : weight / total;
        }
      }
    },
  });
};

const forwardKernels = byRowProgramWalk((walk) =>
  byRowOwner((owner) => forwardKernel(walk, owner)),
);

const backwardKernel = (walk: RowProgramWalk, owner: RowOwner): Kernel =>
  defineWovenKernel({
    name: "attentionProbabilitiesBackward",
    epilogue: "store",
    variant: `${walk}, ${owner}`,
    bindings: [
      { name: "probabilities", access: "read" },
      { name: "gradient", access: "read" },
      { name: "scoresGradient", access: "write" },
    ],
    scalars: shapeScalars,
    streams: streamsRows(walk, "probabilities", "gradient", "scoresGradient"),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    body: (context, _, quads) =>
      rowProgram(
        walk,
        [
          {
            name: "dot",
            fold: "sum",
            value: (load) => `${load("probabilities")} * ${load("gradient")}`,
          },
        ],
        (load) => `${load("probabilities")} * (${load("gradient")} - dot) * s.scale`,
        "scoresGradient",
        owner,
        context,
        quads,
      ),
    workgroups: ({ rows }, _, context) =>
      rowProgramWorkgroups(walk, rows as number, owner, context),
    reference([probabilities, gradient, scoresGradient], scalars) {
      const { rows, columns, scale } = scalars as Readonly<
        Record<"rows" | "columns" | "scale", number>
      >;
      const [p, g, out] = [probabilities, gradient, scoresGradient] as [
        KernelView,
        KernelView,
        KernelView,
      ];
      for (let row = 0; row < rows; row++) {
        const start = row * columns;
        let dot = 0;
        for (let i = start; i < start + columns; i++) dot += (p[i] as number) * (g[i] as number);
        for (let i = start; i < start + columns; i++)
          out[i] = (p[i] as number) * ((g[i] as number) - dot) * scale;
      }
    },
  });

const backwardKernels = byRowProgramWalk((walk) =>
  byRowOwner((owner) => backwardKernel(walk, owner)),
);
