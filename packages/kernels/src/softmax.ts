import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineWovenKernel } from "./kernel.js";
import { requireLengths } from "./operands.js";
import {
  type RowOwner,
  type RowProgramWalk,
  type RowStatistic,
  rowOwner,
  rowProgram,
  rowProgramWalk,
  rowProgramWorkgroups,
  rowsUseSubgroups,
  streamsRows,
} from "./wgsl/row-program.js";
import { expOf, logOf } from "./wgsl/transcendental.js";

/** An input [rows, columns], each row of which is normalised. */
export interface RowsAttributes {
  /** Product of all dimensions but the last. */
  readonly rows: number;
  /** Size of the last dimension. */
  readonly columns: number;
}

/** out = exp(input) / Σ exp(input) along each row, computed relative to the row's maximum. */
export function softmax<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: RowsAttributes,
): Launch<B> {
  return rowsLaunch(softmaxRule, operands, [operands.input, operands.out], attributes);
}

/** out = input - log Σ exp(input) along each row. */
export function logSoftmax<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: RowsAttributes,
): Launch<B> {
  return rowsLaunch(logSoftmaxRule, operands, [operands.input, operands.out], attributes);
}

/** Operands of the gradient of a softmax or log-softmax. */
export interface SoftmaxBackwardOperands<B> {
  /** The result of the forward pass. */
  readonly out: Binding<B>;
  readonly outGradient: Binding<B>;
  readonly inputGradient: Binding<B>;
}

/** inputGradient = out · (outGradient - Σ out · outGradient) along each row. */
export function softmaxBackward<B>(
  operands: SoftmaxBackwardOperands<B>,
  attributes: RowsAttributes,
): Launch<B> {
  const { out, outGradient, inputGradient } = operands;
  return rowsLaunch(softmaxBackwardRule, operands, [out, outGradient, inputGradient], attributes);
}

/** inputGradient = outGradient - exp(out) · Σ outGradient along each row. */
export function logSoftmaxBackward<B>(
  operands: SoftmaxBackwardOperands<B>,
  attributes: RowsAttributes,
): Launch<B> {
  const { out, outGradient, inputGradient } = operands;
  return rowsLaunch(
    logSoftmaxBackwardRule,
    operands,
    [out, outGradient, inputGradient],
    attributes,
  );
}

/**
 * `top` and `total`: a row's maximum, and the sum of exponentials relative to it. WGSL's `max` may skip a NaN, which then
 * enters `total`.
 */
export const softmaxStatistics = (input: string): readonly RowStatistic[] => [
  { name: "top", fold: "max", value: (load) => load(input) },
  { name: "total", fold: "sum", value: (load) => `row_exp(${load(input)} - top)` },
];

function rowsLaunch<B>(
  rule: RowsRule,
  operands: object,
  bindings: readonly Binding<B>[],
  { rows, columns }: RowsAttributes,
): Launch<B> {
  const lengths = Object.fromEntries(Object.keys(operands).map((name) => [name, rows * columns]));
  requireLengths(rule.name, operands as Record<string, Binding<B>>, lengths);
  const kernel = kernelOf(rule, rowProgramWalk(columns), rowOwner(columns));
  return { kernel, bindings, scalars: { rows, columns } };
}

interface RowsRule {
  readonly name: string;
  readonly inputs: readonly string[];
  readonly statistics: readonly RowStatistic[];
  readonly result: (load: (name: string) => string) => string;
  /** Fills `y` from one row of each input. */
  readonly reference: (y: KernelView, ...x: readonly KernelView[]) => void;
}

const softmaxRule: RowsRule = {
  name: "softmax",
  inputs: ["input"],
  statistics: softmaxStatistics("input"),
  result: (load) => `row_exp(${load("input")} - top) / total`,
  reference(y, x) {
    const { top, total } = statisticsOf(x as KernelView);
    for (let c = 0; c < y.length; c++) y[c] = Math.exp((x?.[c] as number) - top) / total;
  },
};

const logSoftmaxRule: RowsRule = {
  name: "logSoftmax",
  inputs: ["input"],
  statistics: softmaxStatistics("input"),
  result: (load) => `(${load("input")} - top) - row_log(total)`,
  reference(y, x) {
    const { top, total } = statisticsOf(x as KernelView);
    for (let c = 0; c < y.length; c++) y[c] = (x?.[c] as number) - top - Math.log(total);
  },
};

const softmaxBackwardRule: RowsRule = {
  name: "softmaxBackward",
  inputs: ["out", "outGradient"],
  statistics: [
    { name: "dot", fold: "sum", value: (load) => `${load("out")} * ${load("outGradient")}` },
  ],
  result: (load) => `${load("out")} * (${load("outGradient")} - dot)`,
  reference(dx, y, dy) {
    let dot = 0;
    for (let c = 0; c < dx.length; c++) dot += (y?.[c] as number) * (dy?.[c] as number);
    for (let c = 0; c < dx.length; c++) dx[c] = (y?.[c] as number) * ((dy?.[c] as number) - dot);
  },
};

const logSoftmaxBackwardRule: RowsRule = {
  name: "logSoftmaxBackward",
  inputs: ["out", "outGradient"],
  statistics: [{ name: "sum", fold: "sum", value: (load) => load("outGradient") }],
  result: (load) => `${load("outGradient")} - row_exp(${load("out")}) * sum`,
  reference(dx, y, dy) {
    let sum = 0;
    for (let c = 0; c < dx.length; c++) sum += dy?.[c] as number;
    for (let c = 0; c < dx.length; c++)
      dx[c] = (dy?.[c] as number) - Math.exp(y?.[c] as number) * sum;
  },
};

/** The functions that softmax statistics and results call. */
export const rowFunctions: string = expOf("row_exp") + logOf("row_log");

/** The maximum of a row, and the sum of exponentials relative to it. */
export function statisticsOf(x: KernelView): { top: number; total: number } {
  let top = -Infinity;
  for (let c = 0; c < x.length; c++) top = Math.max(top, x[c] as number);
  let total = 0;
  for (let c = 0; c < x.length; c++) total += Math.exp((x[c] as number) - top);
  return { top, total };
}

const makeKernel = (rule: RowsRule, walk: RowProgramWalk, owner: RowOwner): Kernel =>
  defineWovenKernel({
    name: rule.name,
    epilogue: "store",
    variant: `${walk}, ${owner}`,
    bindings: [
      ...rule.inputs.map((input) => ({ name: input, access: "read" as const })),
      { name: "result", access: "write" },
    ],
    scalars: [
      { name: "rows", type: "u32" },
      { name: "columns", type: "u32" },
    ],
    streams: streamsRows(walk, ...rule.inputs, "result"),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    body: (context, _, quads) =>
      rowFunctions +
      rowProgram(walk, rule.statistics, rule.result, "result", owner, context, quads),
    workgroups: ({ rows }, _, context) =>
      rowProgramWorkgroups(walk, rows as number, owner, context),
    reference(views, scalars) {
      const { rows, columns } = scalars as { rows: number; columns: number };
      for (let r = 0; r < rows; r++) {
        const [y, ...x] = [views.at(-1) as KernelView, ...views.slice(0, -1)].map((view) =>
          view.subarray(r * columns, (r + 1) * columns),
        );
        rule.reference(y as KernelView, ...x);
      }
    },
  });

const kernels = new Map<string, Kernel>();

function kernelOf(rule: RowsRule, walk: RowProgramWalk, owner: RowOwner): Kernel {
  const key = `${rule.name}, ${walk}, ${owner}`;
  const kernel = kernels.get(key) ?? makeKernel(rule, walk, owner);
  kernels.set(key, kernel);
  return kernel;
}
