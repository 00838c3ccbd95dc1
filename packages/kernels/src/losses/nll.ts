import type { Binding, Kernel, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { requireWhole } from "../attributes.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/** Shape of log-probabilities [rows, classes], and options of the loss. */
export interface NllAttributes {
  readonly rows: number;
  readonly classes: number;
  /** Rows with this label are ignored. Default: none. */
  readonly ignoreIndex?: number | undefined;
}

/** losses[rows] = −weight[label] · input[row, label] from log-probabilities input[rows, classes]. An invalid label gives NaN. */
export function nllLoss<B>(
  operands: {
    readonly input: Binding<B>;
    /** uint32 [rows] */
    readonly labels: Binding<B>;
    /** [classes]; ones where it is absent. */
    readonly weight?: Binding<B> | undefined;
    readonly losses: Binding<B>;
  },
  attributes: NllAttributes,
): Launch<B> {
  const { rows, classes } = attributes;
  requireLengths("nllLoss", operands, {
    input: rows * classes,
    labels: rows,
    weight: classes,
    losses: rows,
  });
  const { input, labels, weight, losses } = operands;
  return launchOf(lossKernels, weight, [labels, input, losses], attributes);
}

/** inputGradient[rows, classes] = −weight[label] · lossGradient[row] at each row's label, 0 elsewhere. */
export function nllLossBackward<B>(
  operands: {
    readonly labels: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly lossGradient: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  attributes: NllAttributes,
): Launch<B> {
  const { rows, classes } = attributes;
  requireLengths("nllLossBackward", operands, {
    labels: rows,
    weight: classes,
    lossGradient: rows,
    inputGradient: rows * classes,
  });
  const { labels, weight, lossGradient, inputGradient } = operands;
  return launchOf(backwardKernels, weight, [labels, lossGradient, inputGradient], attributes);
}

/** out[rows] = weight[label], 0 for ignored rows: the rows' terms in the divisor of a mean. */
export function labelWeights<B>(
  operands: {
    readonly labels: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly out: Binding<B>;
  },
  attributes: NllAttributes,
): Launch<B> {
  const { rows, classes } = attributes;
  requireLengths("labelWeights", operands, { labels: rows, weight: classes, out: rows });
  const { labels, weight, out } = operands;
  return launchOf(weightsKernels, weight, [labels, out], attributes);
}

function launchOf<B>(
  kernels: Kernels,
  weight: Binding<B> | undefined,
  [labels, ...rest]: readonly Binding<B>[],
  { rows, classes, ignoreIndex }: NllAttributes,
): Launch<B> {
  if (ignoreIndex !== undefined)
    requireWhole("the loss of labels", "ignoreIndex", ignoreIndex, -(2 ** 31), 2 ** 32 - 1);
  return {
    kernel: kernels[weight ? "weighted" : "plain"],
    bindings: [labels as Binding<B>, ...(weight ? [weight] : []), ...rest],
    scalars: {
      rows,
      classes,
      ignores: ignoreIndex === undefined ? 0 : 1,
      ignore: (ignoreIndex ?? 0) >>> 0,
    },
  };
}

const atEach = (name: string, index: string): string =>
  `vec4f(${["x", "y", "z", "w"].map((lane) => `at_${name}(${index}.${lane})`).join(", ")})`;

interface Rule {
  readonly name: string;
  readonly bindings: readonly KernelBinding[];
  /** Whether the result is [rows, classes], not [rows]. */
  readonly isFull: boolean;
  /** vec4f, from the element `e`, its `row`, its `label` and that label's `gain`, all of four lanes. */
  value(): string;
  reference(views: readonly KernelView[], element: number, row: number, label: number): number;
}

const lossRule: Rule = {
  name: "nllLoss",
  bindings: [
    { name: "input", access: "read" },
    { name: "losses", access: "write" },
  ],
  isFull: false,
  value: () => `-${atEach("input", "(row * s.classes + min(label, vec4u(s.classes - 1u)))")}`,
  reference: ([x, losses], row, _, label) =>
    -(x?.[((x?.length as number) / (losses?.length as number)) * row + label] as number),
};

const backwardRule: Rule = {
  name: "nllLossBackward",
  bindings: [
    { name: "lossGradient", access: "read" },
    { name: "inputGradient", access: "write" },
  ],
  isFull: true,
  value: () => `select(vec4f(), -${atEach("lossGradient", "row")}, e % s.classes == label)`,
  reference([g, dx], element, row, label) {
    const classes = (dx?.length as number) / (g?.length as number);
    return element % classes === label ? -(g?.[row] as number) : 0;
  },
};

const weightsRule: Rule = {
  name: "labelWeights",
  bindings: [{ name: "result", access: "write" }],
  isFull: false,
  value: () => "vec4f(1.0)",
  reference: () => 1,
};

const makeKernel = (
  { name, bindings, isFull, value, reference }: Rule,
  isWeighted: boolean,
): Kernel => {
  const size = isFull ? "s.rows * s.classes" : "s.rows";
  const out = (bindings.at(-1) as KernelBinding).name;
  return defineKernel({
    name,
    epilogue: "store",
    variant: isWeighted ? "weighted" : "",
    bindings: [
      { name: "labels", access: "read", unit: 1, dtypes: ["uint32"] },
      ...(isWeighted ? [{ name: "weight", access: "read" as const }] : []),
      ...bindings,
    ],
    scalars: (["rows", "classes", "ignores", "ignore"] as const).map((scalar) => ({
      name: scalar,
      type: "u32",
    })),
    body: () => `
// 0 for ignored rows, v for the others, NaN where the label is no class.
fn counted(label: vec4u, v: vec4f) -> vec4f {
  let no_class = bitcast<vec4f>(min(label, vec4u(1u)) | vec4u(0x7fc00000u));
  let valid = select(v, no_class, label >= vec4u(s.classes));
  return select(valid, vec4f(), (label == vec4u(s.ignore)) & vec4<bool>(s.ignores != 0u));
}
${linearMain()}
  if (index * 4u >= ${size}) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let row = ${isFull ? "e / s.classes" : "e"};
  let label = vec4u(at_labels(row.x), at_labels(row.y), at_labels(row.z), at_labels(row.w));
  let value = ${value()};
  store_${out}(index, counted(label, value${isWeighted ? ` * ${atEach("weight", "min(label, vec4u(s.classes - 1u))")}` : ""}));
}
`,
    workgroups: ({ rows, classes }) =>
      linearWorkgroups(Math.ceil(((rows as number) * (isFull ? (classes as number) : 1)) / 4)),
    reference(views, scalars) {
      const { rows, classes, ignores, ignore } = scalars as Readonly<
        Record<"rows" | "classes" | "ignores" | "ignore", number>
      >;
      const [labels, ...rest] = views;
      const gain = isWeighted ? rest.shift() : undefined;
      const result = rest.at(-1) as KernelView;
      for (let i = 0; i < rows * (isFull ? classes : 1); i++) {
        const row = isFull ? Math.floor(i / classes) : i;
        const label = (labels?.[row] as number) >>> 0;
        const scaled = (gain ? (gain[label] as number) : 1) * reference(rest, i, row, label);
        const isIgnored = ignores === 1 && label === ignore;
        result[i] = isIgnored ? 0 : label < classes ? scaled : Number.NaN;
      }
    },
  });
};

/** The kernels of a rule, with weights of classes and without. */
interface Kernels {
  readonly plain: Kernel;
  readonly weighted: Kernel;
}

const kernelsOf = (rule: Rule): Kernels => ({
  plain: makeKernel(rule, false),
  weighted: makeKernel(rule, true),
});

// Constants of their own, so that bundlers drop those that a program does not use.
const lossKernels = kernelsOf(lossRule);
const backwardKernels = kernelsOf(backwardRule);
const weightsKernels = kernelsOf(weightsRule);
