import type {
  Binding,
  Kernel,
  KernelBinding,
  KernelScalar,
  KernelView,
  Launch,
} from "@halfstep/device";
import { requireOneOf, requireWhole, requireWithin } from "../attributes.js";
import { defineKernel, defineWovenKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { rowFunctions, softmaxStatistics, statisticsOf } from "../softmax.js";
import {
  type RowOwner,
  type RowProgramWalk,
  type RowStatistic,
  rowFold,
  rowOwner,
  rowProgram,
  rowProgramWalk,
  rowProgramWorkgroups,
  rowsUseSubgroups,
  streamsRows,
} from "../wgsl/row-program.js";

/** Shape of logits [rows, classes], and options of the loss. */
export interface CrossEntropyAttributes {
  readonly rows: number;
  readonly classes: number;
  /** Rows with this label have neither loss nor gradient. Default: there are none. */
  readonly ignoreIndex?: number | undefined;
  /** Share of the target that is spread evenly over all classes, from 0 to 1 (Szegedy et al. 2016). Default 0. */
  readonly labelSmoothing?: number | undefined;
}

interface LabelledLogits<B> {
  /** [rows, classes] */
  readonly logits: Binding<B>;
  /** uint32 [rows] */
  readonly labels: Binding<B>;
  /** The factor of each class's part of a loss, [classes]; ones where it is absent. */
  readonly weight?: Binding<B> | undefined;
}

/**
 * losses[rows] = (1 - smoothing) · loss(label) + smoothing · mean of loss(class), with loss(class) = weight[class] · (log Σ
 * exp(logits) - logits[class]), as torch.nn.functional.cross_entropy, in float32 relative to each row's maximum. An invalid label
 * gives NaN.
 *
 * @throws RangeError for options out of range, and for lengths that do not fit
 */
export function softmaxCrossEntropy<B>(
  operands: LabelledLogits<B> & { readonly losses: Binding<B> },
  attributes: CrossEntropyAttributes,
): Launch<B> {
  const { rows, classes } = attributes;
  requireOptions("softmaxCrossEntropy", attributes);
  requireLengths("softmaxCrossEntropy", operands, {
    logits: rows * classes,
    labels: rows,
    weight: classes,
    losses: rows,
  });
  const { logits, labels, weight, losses } = operands;
  return {
    kernel: forwardKernel(formOf(weight, attributes), rowOwner(classes)),
    bindings: [logits, labels, ...(weight ? [weight] : []), losses],
    scalars: { rows, columns: classes, ...ignored(attributes), ...shares(attributes) },
  };
}

/**
 * The gradient of these losses, times lossGradient, divided by the number of rows where the reduction is "mean": without weights and
 * smoothing (softmax(logits) - onehot(labels)) · lossGradient. lossGradient has one element, or one per row. An invalid label gives
 * NaN.
 *
 * @throws RangeError for options out of range and other reductions, and for "mean" with `ignoreIndex` or weights: torch divides by the sum of
 * the weights of counted rows, which is known only on the device
 */
export function softmaxCrossEntropyBackward<B>(
  operands: LabelledLogits<B> & {
    readonly lossGradient: Binding<B>;
    readonly logitsGradient: Binding<B>;
  },
  attributes: CrossEntropyAttributes & { readonly reduction: "mean" | "none" },
): Launch<B> {
  const { rows, classes, reduction, ignoreIndex } = attributes;
  const { logits, labels, weight, lossGradient, logitsGradient } = operands;
  requireOptions("softmaxCrossEntropyBackward", attributes);
  requireOneOf("softmaxCrossEntropyBackward", "reduction", reduction, ["mean", "none"]);
  if (reduction === "mean" && (weight || ignoreIndex !== undefined))
    throw new RangeError(
      'softmaxCrossEntropyBackward: what the rows that are not ignored weigh is unknown here: use reduction "none" and divide lossGradient by it',
    );
  const isShared = lossGradient.length === 1;
  requireLengths("softmaxCrossEntropyBackward", operands, {
    logits: rows * classes,
    labels: rows,
    weight: classes,
    lossGradient: isShared ? 1 : rows,
    logitsGradient: rows * classes,
  });
  return {
    kernel: backwardKernel(formOf(weight, attributes), rowProgramWalk(classes), rowOwner(classes)),
    bindings: [logits, labels, ...(weight ? [weight] : []), lossGradient, logitsGradient],
    scalars: {
      rows,
      columns: classes,
      ...ignored(attributes),
      ...shares(attributes),
      perRow: isShared ? 0 : 1,
      factor: reduction === "mean" ? 1 / rows : 1,
    },
  };
}

function requireOptions(op: string, { labelSmoothing, ignoreIndex }: CrossEntropyAttributes): void {
  if (labelSmoothing !== undefined) requireWithin(op, "labelSmoothing", labelSmoothing, 0, 1);
  if (ignoreIndex !== undefined)
    requireWhole(op, "ignoreIndex", ignoreIndex, -(2 ** 31), 2 ** 32 - 1);
}

/** The terms of a kernel's losses, on which its program depends. */
type Form = "plain" | "weighted" | "smooth" | "weighted smooth";

function formOf(weight: object | undefined, { labelSmoothing }: CrossEntropyAttributes): Form {
  if (labelSmoothing) return weight ? "weighted smooth" : "smooth";
  return weight ? "weighted" : "plain";
}

const isWeighted = (form: Form): boolean => form.startsWith("weighted");
const isSmooth = (form: Form): boolean => form.endsWith("smooth");

const ignored = ({ ignoreIndex }: CrossEntropyAttributes): { ignores: number; ignore: number } => ({
  ignores: ignoreIndex === undefined ? 0 : 1,
  ignore: (ignoreIndex ?? 0) >>> 0,
});

/** The shares of the loss at the label and at each class; without smoothing, the label has all. */
const shares = ({
  labelSmoothing,
  classes,
}: CrossEntropyAttributes): { ownShare?: number; eachShare?: number } =>
  labelSmoothing ? { ownShare: 1 - labelSmoothing, eachShare: labelSmoothing / classes } : {};

const inputsOf = (form: Form): readonly KernelBinding[] => [
  { name: "logits", access: "read" },
  { name: "labels", access: "read", unit: 1, dtypes: ["uint32"] },
  ...(isWeighted(form) ? [{ name: "weight", access: "read" } as const] : []),
];

const scalarsOf = (form: Form): readonly KernelScalar[] => [
  ...(["rows", "columns", "ignores", "ignore"] as const).map(
    (name) => ({ name, type: "u32" }) as const,
  ),
  ...(isSmooth(form)
    ? (["ownShare", "eachShare"] as const).map((name) => ({ name, type: "f32" }) as const)
    : []),
];

const weightAt = (walk: RowProgramWalk, j: string): string =>
  walk === "lanes" ? `vec4f(at_weight(${j}))` : `load_weight(${j})`;

/** The statistics of a row for smoothing, besides those of softmax: the sum of all weights, … … */
const massOf = (form: Form, walk: RowProgramWalk): readonly RowStatistic[] =>
  form === "weighted smooth"
    ? [{ name: "mass", fold: "sum", value: (_, j) => weightAt(walk, j) }]
    : [];

const massValue = (form: Form): string => (isWeighted(form) ? "mass" : "vec4f(f32(s.columns))");

/** … and the sum of the weighted logits relative to the row's maximum. */
const spreadOf = (form: Form): RowStatistic => ({
  name: "spread",
  fold: "sum",
  value: (load, j) =>
    `(${load("logits")} - top)${isWeighted(form) ? ` * ${weightAt("lanes", j)}` : ""}`,
});

const gathered = (name: string, index: string): string =>
  `vec4f(${["x", "y", "z", "w"].map((lane) => `at_${name}(${index}.${lane})`).join(", ")})`;

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
fn class_of(label: vec4u) -> vec4u { return min(label, vec4u(s.columns - 1u)); }
`;

const makeForward = (form: Form, owner: RowOwner): Kernel => {
  const more = isSmooth(form) ? [...massOf(form, "lanes"), spreadOf(form)] : [];
  const smooth = isSmooth(form) ? "mass: vec4f, spread: vec4f" : "";
  const own = isWeighted(form) ? ` * ${gathered("weight", "class_of(label)")}` : "";
  return defineKernel({
    name: "softmaxCrossEntropy",
    epilogue: "store",
    variant: `${owner}, ${form}`,
    bindings: [...inputsOf(form), { name: "losses", access: "write" }],
    scalars: scalarsOf(form),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    body: (context) => `${rowFunctions}${labelFunctions}
fn logits_of(i: vec4u) -> vec4f { return ${gathered("logits", "i")}; }
fn loss_of(row: vec4u, top: vec4f, total: vec4f, ${smooth}) -> vec4f {
  let label = labels_of(row);
  let log_total = row_log(total);
  let own = (log_total - (logits_of(row * s.columns + class_of(label)) - top))${own};
  return counted(label, ${isSmooth(form) ? "own * s.ownShare + (mass * log_total - spread) * s.eachShare" : "own"});
}
${rowFold(
  [...softmaxStatistics("logits"), ...more],
  `loss_of(row, top, total${isSmooth(form) ? `, ${massValue(form)}, spread` : ""})`,
  "losses",
  owner,
  context,
)}`,
    workgroups: ({ rows }, _, context) =>
      rowProgramWorkgroups("lanes", rows as number, owner, context),
    reference(views, scalars) {
      const { logits, labels, weight, rest } = viewsOf(form, views);
      const { rows, columns, ownShare = 1, eachShare = 0 } = scalars as Scalars;
      const losses = rest[0] as KernelView;
      for (let r = 0; r < rows; r++) {
        const x = logits.subarray(r * columns, (r + 1) * columns);
        const { top, total } = statisticsOf(x);
        const lossOf = (c: number): number =>
          (Math.log(total) - ((x[c] ?? Number.NaN) - top)) * weightOf(weight, c);
        const label = (labels[r] as number) >>> 0;
        let loss = lossOf(label) * ownShare;
        if (isSmooth(form)) for (let c = 0; c < columns; c++) loss += lossOf(c) * eachShare;
        losses[r] = isIgnored(label, scalars) ? 0 : loss;
      }
    },
  });
};

const makeBackward = (form: Form, walk: RowProgramWalk, owner: RowOwner): Kernel => {
  const own = isWeighted(form) ? ` * ${gathered("weight", "class_of(label)")}` : "";
  const each = isWeighted(form) ? gathered("weight", "column") : "vec4f(1.0)";
  return defineWovenKernel({
    name: "softmaxCrossEntropyBackward",
    epilogue: "store",
    variant: `${walk}, ${owner}, ${form}`,
    bindings: [
      ...inputsOf(form),
      { name: "lossGradient", access: "read" },
      { name: "logitsGradient", access: "write" },
    ],
    scalars: [...scalarsOf(form), { name: "perRow", type: "u32" }, { name: "factor", type: "f32" }],
    streams: streamsRows(walk, "logits", "logitsGradient"),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    body: (context, _, quads) => `${rowFunctions}${labelFunctions}
fn gradient_of(row: vec4u, column: vec4u, p: vec4f, ${isSmooth(form) ? "mass: vec4f" : ""}) -> vec4f {
  let label = labels_of(row);
  let i = row * s.perRow;
  let dy = ${gathered("lossGradient", "i")};
  let own = (p - select(vec4f(0.0), vec4f(1.0), column == label))${own};
  return counted(label, ${isSmooth(form) ? `(own * s.ownShare + (mass * p - ${each}) * s.eachShare)` : "own"} * (dy * s.factor));
}
${rowProgram(
  walk,
  [...softmaxStatistics("logits"), ...massOf(form, walk)],
  (load) =>
    `gradient_of(row, column, row_exp(${load("logits")} - top) / total${isSmooth(form) ? `, ${massValue(form)}` : ""})`,
  "logitsGradient",
  owner,
  context,
  quads,
)}`,
    workgroups: ({ rows }, _, context) =>
      rowProgramWorkgroups(walk, rows as number, owner, context),
    reference(views, scalars) {
      const { logits, labels, weight, rest } = viewsOf(form, views);
      const [lossGradient, dx] = rest as [KernelView, KernelView];
      const { rows, columns, perRow, factor, ownShare = 1, eachShare = 0 } = scalars as Scalars;
      let sum = 0;
      for (let c = 0; c < columns; c++) sum += weightOf(weight, c);
      for (let r = 0; r < rows; r++) {
        const x = logits.subarray(r * columns, (r + 1) * columns);
        const { top, total } = statisticsOf(x);
        const label = (labels[r] as number) >>> 0;
        const dy = (lossGradient[r * perRow] as number) * factor;
        for (let c = 0; c < columns; c++) {
          const p = Math.exp((x[c] as number) - top) / total;
          let gradient = (p - (c === label ? 1 : 0)) * weightOf(weight, label) * ownShare;
          if (isSmooth(form)) gradient += (sum * p - weightOf(weight, c)) * eachShare;
          const valid = label < columns ? gradient * dy : Number.NaN;
          dx[r * columns + c] = isIgnored(label, scalars) ? 0 : valid;
        }
      }
    },
  });
};

type Scalars = Readonly<
  Record<"rows" | "columns" | "perRow" | "factor", number> &
    Partial<Record<"ownShare" | "eachShare", number>>
>;

function viewsOf(form: Form, [logits, labels, ...others]: readonly KernelView[]) {
  const [weight, rest] = isWeighted(form) ? [others[0], others.slice(1)] : [undefined, others];
  return { logits: logits as KernelView, labels: labels as KernelView, weight, rest };
}

const weightOf = (weight: KernelView | undefined, c: number): number =>
  weight ? (weight[c] ?? Number.NaN) : 1;

const isIgnored = (label: number, scalars: Readonly<Record<string, number>>): boolean =>
  scalars.ignores === 1 && label === scalars.ignore;

const kernels = new Map<string, Kernel>();

function kernelOf(key: string, make: () => Kernel): Kernel {
  const kernel = kernels.get(key) ?? make();
  kernels.set(key, kernel);
  return kernel;
}

const forwardKernel = (form: Form, owner: RowOwner): Kernel =>
  kernelOf(`${form}, ${owner}`, () => makeForward(form, owner));

const backwardKernel = (form: Form, walk: RowProgramWalk, owner: RowOwner): Kernel =>
  kernelOf(`${form}, ${walk}, ${owner}`, () => makeBackward(form, walk, owner));
