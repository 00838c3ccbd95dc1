import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { rowFunctions, softmaxStatistics, statisticsOf } from "../softmax.js";
import {
  byRowOwner,
  type RowOwner,
  type RowProgramWalk,
  rowFold,
  rowOwner,
  rowProgram,
  rowProgramWalk,
  rowProgramWorkgroups,
  rowsUseSubgroups,
} from "../wgsl/row-program.js";

export interface CrossEntropyAttributes {
  readonly rows: number;
  readonly classes: number;
  /** Rows with this label have neither loss nor gradient. Default: there are none. */
  readonly ignoreIndex?: number;
}

/**
 * losses[rows] = log Σ exp(logits) - logits[label], in float32 about each row's maximum, from logits[rows, classes] and
 * labels[rows] (uint32). A label that is no class gives NaN.
 */
export function softmaxCrossEntropy<B>(
  operands: {
    readonly logits: Binding<B>;
    readonly labels: Binding<B>;
    readonly losses: Binding<B>;
  },
  attributes: CrossEntropyAttributes,
): Launch<B> {
  const { rows, classes } = attributes;
  requireLengths("softmaxCrossEntropy", operands, {
    logits: rows * classes,
    labels: rows,
    losses: rows,
  });
  const { logits, labels, losses } = operands;
  return {
    kernel: forwardKernels[rowOwner(classes)],
    bindings: [logits, labels, losses],
    scalars: { rows, columns: classes, ...ignored(attributes) },
  };
}

/**
 * logitsGradient = (softmax(logits) - onehot(labels)) · lossGradient, divided by the number of rows where the reduction is
 * "mean". lossGradient has one element, or one per row. A label that is no class gives NaN.
 *
 * Throws a `RangeError` for "mean" with `ignoreIndex`: torch divides by the rows that count, which only the device knows.
 */
export function softmaxCrossEntropyBackward<B>(
  operands: {
    readonly logits: Binding<B>;
    readonly labels: Binding<B>;
    readonly lossGradient: Binding<B>;
    readonly logitsGradient: Binding<B>;
  },
  attributes: CrossEntropyAttributes & { readonly reduction: "mean" | "none" },
): Launch<B> {
  const { rows, classes, reduction, ignoreIndex } = attributes;
  const { logits, labels, lossGradient, logitsGradient } = operands;
  if (reduction === "mean" && ignoreIndex !== undefined)
    throw new RangeError(
      'softmaxCrossEntropyBackward: the mean over rows that are not ignored is unknown here: use reduction "none" and divide lossGradient by their number',
    );
  const isShared = lossGradient.length === 1;
  requireLengths("softmaxCrossEntropyBackward", operands, {
    logits: rows * classes,
    labels: rows,
    lossGradient: isShared ? 1 : rows,
    logitsGradient: rows * classes,
  });
  return {
    kernel: backwardKernels[rowProgramWalk(classes)][rowOwner(classes)],
    bindings: [logits, labels, lossGradient, logitsGradient],
    scalars: {
      rows,
      columns: classes,
      ...ignored(attributes),
      perRow: isShared ? 0 : 1,
      factor: reduction === "mean" ? 1 / rows : 1,
    },
  };
}

const ignored = ({ ignoreIndex }: CrossEntropyAttributes): { ignores: number; ignore: number } => ({
  ignores: ignoreIndex === undefined ? 0 : 1,
  ignore: (ignoreIndex ?? 0) >>> 0,
});

const commonScalars = [
  { name: "rows", type: "u32" },
  { name: "columns", type: "u32" },
  { name: "ignores", type: "u32" },
  { name: "ignore", type: "u32" },
] as const;

const labelFunctions = /* wgsl */ `
fn labels_of(row: vec4u) -> vec4u {
  return vec4u(at_labels(row.x), at_labels(row.y), at_labels(row.z), at_labels(row.w));
}
// 0 for ignored rows, v for the others, NaN where the label is no class.
fn counted(label: vec4u, v: vec4f) -> vec4f {
  let no_class = bitcast<vec4f>(min(label, vec4u(1u)) | vec4u(0x7fc00000u));
  let valid = select(v, no_class, label >= vec4u(s.columns));
  return select(valid, vec4f(0.0), (label == vec4u(s.ignore)) & vec4<bool>(s.ignores != 0u));
}
`;

const forwardKernels = byRowOwner(
  (owner): Kernel =>
    defineKernel({
      name: "softmaxCrossEntropy",
      epilogue: "store",
      variant: owner,
      bindings: [
        { name: "logits", access: "read" },
        { name: "labels", access: "read", unit: 1, dtypes: ["uint32"] },
        { name: "losses", access: "write" },
      ],
      scalars: commonScalars,
      subgroups: (context) => rowsUseSubgroups(owner, context),
      body: (context) => `${rowFunctions}${labelFunctions}
fn logits_of(i: vec4u) -> vec4f {
  return vec4f(at_logits(i.x), at_logits(i.y), at_logits(i.z), at_logits(i.w));
}
fn loss_of(row: vec4u, top: vec4f, total: vec4f) -> vec4f {
  let label = labels_of(row);
  let chosen = logits_of(row * s.columns + min(label, vec4u(s.columns - 1u)));
  return counted(label, row_log(total) - (chosen - top));
}
${rowFold(softmaxStatistics("logits"), "loss_of(row, top, total)", "losses", owner, context)}`,
      workgroups: ({ rows }, _, context) =>
        rowProgramWorkgroups("lanes", rows as number, owner, context),
      reference([logits, labels, losses], scalars) {
        const { rows, columns } = scalars as { rows: number; columns: number };
        for (let r = 0; r < rows; r++) {
          const x = (logits as KernelView).subarray(r * columns, (r + 1) * columns);
          const { top, total } = statisticsOf(x);
          const label = labels?.[r] as number;
          const loss = Math.log(total) - ((x[label] ?? Number.NaN) - top);
          (losses as KernelView)[r] = isIgnored(label, scalars) ? 0 : loss;
        }
      },
    }),
);

const isIgnored = (label: number, scalars: Readonly<Record<string, number>>): boolean =>
  scalars.ignores === 1 && label === scalars.ignore;

const backwardKernel = (walk: RowProgramWalk, owner: RowOwner): Kernel =>
  defineKernel({
    name: "softmaxCrossEntropyBackward",
    epilogue: "store",
    variant: `${walk}, ${owner}`,
    bindings: [
      { name: "logits", access: "read" },
      { name: "labels", access: "read", unit: 1, dtypes: ["uint32"] },
      { name: "lossGradient", access: "read" },
      { name: "logitsGradient", access: "write" },
    ],
    scalars: [...commonScalars, { name: "perRow", type: "u32" }, { name: "factor", type: "f32" }],
    subgroups: (context) => rowsUseSubgroups(owner, context),
    body: (context) => `${rowFunctions}${labelFunctions}
fn gradient_of(row: vec4u, column: vec4u, p: vec4f) -> vec4f {
  let label = labels_of(row);
  let i = row * s.perRow;
  let dy = vec4f(at_lossGradient(i.x), at_lossGradient(i.y), at_lossGradient(i.z), at_lossGradient(i.w));
  return counted(label, (p - select(vec4f(0.0), vec4f(1.0), column == label)) * (dy * s.factor));
}
${rowProgram(
  walk,
  softmaxStatistics("logits"),
  (load) => `gradient_of(row, column, row_exp(${load("logits")} - top) / total)`,
  "logitsGradient",
  owner,
  context,
)}`,
    workgroups: ({ rows }, _, context) =>
      rowProgramWorkgroups(walk, rows as number, owner, context),
    reference([logits, labels, lossGradient, logitsGradient], scalars) {
      const { rows, columns, perRow, factor } = scalars as Readonly<
        Record<"rows" | "columns" | "perRow" | "factor", number>
      >;
      const dx = logitsGradient as KernelView;
      for (let r = 0; r < rows; r++) {
        const x = (logits as KernelView).subarray(r * columns, (r + 1) * columns);
        const { top, total } = statisticsOf(x);
        const label = labels?.[r] as number;
        const dy = (lossGradient?.[r * perRow] as number) * factor;
        for (let c = 0; c < columns; c++) {
          const p = Math.exp((x[c] as number) - top) / total;
          const gradient = label < columns ? (p - (c === label ? 1 : 0)) * dy : Number.NaN;
          dx[r * columns + c] = isIgnored(label, scalars) ? 0 : gradient;
        }
      }
    },
  });

const backwardKernels: Record<RowProgramWalk, Readonly<Record<RowOwner, Kernel>>> = {
  quads: byRowOwner((owner) => backwardKernel("quads", owner)),
  lanes: byRowOwner((owner) => backwardKernel("lanes", owner)),
};
