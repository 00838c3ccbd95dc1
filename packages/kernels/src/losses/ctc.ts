import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { requireWhole } from "../attributes.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";

/** Sizes of a loss over alignments. */
export interface CtcShape {
  readonly length: number;
  readonly batch: number;
  readonly classes: number;
  /** The most labels of a sequence. */
  readonly labels: number;
  /** The class between labels. */
  readonly blank: number;
}

/** What all launches of the loss read. */
export interface CtcOperands<B> {
  /** float32 [length, batch, classes] */
  readonly logProbs: Binding<B>;
  /** uint32 [batch, labels] */
  readonly targets: Binding<B>;
  /** uint32 [batch]: time steps, and labels, of each sequence. */
  readonly inputLengths: Binding<B>;
  readonly targetLengths: Binding<B>;
}

/** Places of the labels with a blank before, between and behind them. */
const placesOf = ({ labels }: CtcShape): number => 2 * labels + 1;

const scalarsOf = (shape: CtcShape): Record<string, number> => ({
  ...{ length: shape.length, batch: shape.batch, classes: shape.classes },
  ...{ labels: shape.labels, blank: shape.blank, places: placesOf(shape) },
});

const inputsOf = <B>(operands: CtcOperands<B>): readonly Binding<B>[] => [
  operands.logProbs,
  operands.targets,
  operands.inputLengths,
  operands.targetLengths,
];

function checkLengths<B>(op: string, operands: CtcOperands<B>, shape: CtcShape): void {
  const { length, batch, classes, labels, blank } = shape;
  requireWhole(op, "blank", blank, 0, Math.max(0, classes - 1));
  requireLengths(
    op,
    { ...operands },
    {
      logProbs: length * batch * classes,
      targets: batch * labels,
      inputLengths: batch,
      targetLengths: batch,
    },
  );
}

/**
 * The connectionist temporal classification loss (Graves et al. 2006): losses[batch] = −log of the probability of the labels, over all
 * alignments with blanks, by the forward recursion, which it keeps in alphas[batch, length, 2 · labels + 1]. Impossible labels have a loss
 * of about 1e30; a length beyond that of the operand, or a label that is no class, has NaN.
 */
export function ctcLoss<B>(
  operands: CtcOperands<B> & { readonly alphas: Binding<B>; readonly losses: Binding<B> },
  shape: CtcShape,
): Launch<B> {
  const { alphas, losses, ...inputs } = operands;
  checkLengths("ctcLoss", inputs, shape);
  return {
    kernel: forward,
    bindings: [...inputsOf(inputs), alphas, losses],
    scalars: scalarsOf(shape),
  };
}

/** betas[batch, length, 2 · labels + 1]: log-probabilities of the labels that follow each place. */
export function ctcBetas<B>(
  operands: CtcOperands<B> & { readonly betas: Binding<B> },
  shape: CtcShape,
): Launch<B> {
  const { betas, ...inputs } = operands;
  checkLengths("ctcBetas", inputs, shape);
  return { kernel: backward, bindings: [...inputsOf(inputs), betas], scalars: scalarsOf(shape) };
}

/** The gradient of each loss by the log-probabilities: minus the probability that a step is in a place of the class. */
export function ctcGradient<B>(
  operands: Omit<CtcOperands<B>, "logProbs"> & {
    readonly alphas: Binding<B>;
    readonly betas: Binding<B>;
    readonly losses: Binding<B>;
    readonly gradient: Binding<B>;
  },
  shape: CtcShape,
): Launch<B> {
  const { targets, inputLengths, targetLengths, alphas, betas, losses } = operands;
  return {
    kernel: gradients,
    bindings: [targets, inputLengths, targetLengths, alphas, betas, losses, operands.gradient],
    scalars: scalarsOf(shape),
  };
}

const scalars = ["length", "batch", "classes", "labels", "blank", "places"].map((name) => ({
  name,
  type: "u32" as const,
}));
const float = (name: string, access: "read" | "write" | "readwrite") =>
  ({ name, access, unit: 1, dtypes: ["float32"] }) as const;
const integer = (name: string) => ({ name, access: "read", unit: 1, dtypes: ["uint32"] }) as const;
const lengths = [integer("targets"), integer("inputLengths"), integer("targetLengths")];

/** The logarithm of 0: WGSL may assume that infinities do not occur. */
const nothing = -1e30;

const workgroup = 64;

const common = /* wgsl */ `
fn class_of(b: u32, p: u32) -> u32 {
  if (p % 2u == 0u) { return s.blank; }
  return at_targets(b * s.labels + p / 2u);
}
// Whether a path may leave out the blank before place p.
fn skips(b: u32, p: u32) -> bool {
  if ((p < 2u) | (p % 2u == 0u)) { return false; }
  return class_of(b, p) != class_of(b, p - 2u);
}
`;

const recursion = /* wgsl */ `${common}
fn emitted(b: u32, t: u32, p: u32) -> f32 {
  return at_logProbs((t * s.batch + b) * s.classes + class_of(b, p));
}
fn joined(x: f32, y: f32, z: f32) -> f32 {
  let m = max(x, max(y, z));
  return m + log(exp(x - m) + exp(y - m) + exp(z - m));
}
`;

const head = `@compute @workgroup_size(${workgroup})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let sample = group.x + group.y * groups.x;
  let b = min(sample, s.batch - 1u);
  let steps = min(at_inputLengths(b), s.length);
  let used = 2u * min(at_targetLengths(b), s.labels) + 1u;
`;

const joined = (x: number, y: number, z: number): number => {
  const m = Math.max(x, y, z);
  return m + Math.log(Math.exp(x - m) + Math.exp(y - m) + Math.exp(z - m));
};

interface Sample {
  readonly b: number;
  readonly steps: number;
  readonly used: number;
  /** Whether a length is beyond that of the operand, or a label is no class. */
  readonly isOutside: boolean;
  classOf(p: number): number;
  skips(p: number): boolean;
}

function samplesOf(
  [targets, inputLengths, targetLengths]: readonly KernelView[],
  values: Readonly<Record<string, number>>,
): Sample[] {
  const { batch, classes, labels, length, blank } = values as unknown as CtcShape;
  return Array.from({ length: batch }, (_, b) => {
    const classOf = (p: number): number =>
      p % 2 === 0 ? blank : (targets?.[b * labels + (p - 1) / 2] as number);
    const [steps, count] = [inputLengths?.[b] as number, targetLengths?.[b] as number];
    const used = 2 * Math.min(count, labels) + 1;
    const places = Array.from({ length: used }, (_, p) => p);
    return {
      b,
      steps: Math.min(steps, length),
      used,
      isOutside: steps > length || count > labels || places.some((p) => classOf(p) >= classes),
      classOf,
      skips: (p) => p >= 2 && p % 2 === 1 && classOf(p) !== classOf(p - 2),
    };
  });
}

const forward: Kernel = defineKernel({
  name: "ctcLoss",
  bindings: [
    float("logProbs", "read"),
    ...lengths,
    float("alphas", "readwrite"),
    float("losses", "write"),
  ],
  scalars,
  body: () => `${recursion}${head}
  for (var t = 0u; t < s.length; t++) {
    let row = (b * s.length + t) * s.places;
    if (t < steps) {
      for (var p = local; p < used; p += ${workgroup}u) {
        var before = select(${nothing}, 0.0, p < 2u);
        if (t > 0u) {
          let last = row - s.places;
          let x = at_alphas(last + p);
          var y = f32(${nothing});
          var z = f32(${nothing});
          if (p > 0u) { y = at_alphas(last + p - 1u); }
          if (skips(b, p)) { z = at_alphas(last + p - 2u); }
          before = joined(x, y, z);
        }
        store_alphas(row + p, max(before + emitted(b, t, p), ${nothing}));
      }
    }
    storageBarrier();
    workgroupBarrier();
  }
  if ((local == 0u) & (sample < s.batch)) {
    let row = (b * s.length + max(steps, 1u) - 1u) * s.places;
    var y = f32(${nothing});
    if (used > 1u) { y = at_alphas(row + used - 2u); }
    var loss = -joined(at_alphas(row + used - 1u), y, ${nothing});
    var outside = (at_inputLengths(b) > s.length) | (at_targetLengths(b) > s.labels);
    for (var p = 1u; p < used; p += 2u) { outside = outside | (class_of(b, p) >= s.classes); }
    // WGSL has no constant for NaN.
    if (outside) { loss = bitcast<f32>(0x7fc00000u | min(b, 1u)); }
    store_losses(b, loss);
  }
}
`,
  workgroups: ({ batch }) => linearWorkgroups(batch as number, 1),
  reference(views, values) {
    const [logProbs, , , , alphas, losses] = views as KernelView[] & Record<0 | 4 | 5, KernelView>;
    const { length, batch, classes, places } = values as unknown as CtcShape & { places: number };
    for (const { b, steps, used, classOf, skips, isOutside } of samplesOf(
      views.slice(1, 4),
      values,
    )) {
      const at = (t: number, p: number): number => alphas[(b * length + t) * places + p] as number;
      for (let t = 0; t < steps; t++)
        for (let p = 0; p < used; p++) {
          const before =
            t === 0
              ? p < 2
                ? 0
                : nothing
              : joined(
                  at(t - 1, p),
                  p > 0 ? at(t - 1, p - 1) : nothing,
                  skips(p) ? at(t - 1, p - 2) : nothing,
                );
          const emitted = logProbs[(t * batch + b) * classes + classOf(p)] as number;
          alphas[(b * length + t) * places + p] = Math.max(before + emitted, nothing);
        }
      const end = Math.max(steps, 1) - 1;
      const loss = -joined(at(end, used - 1), used > 1 ? at(end, used - 2) : nothing, nothing);
      losses[b] = isOutside ? Number.NaN : loss;
    }
  },
});

const backward: Kernel = defineKernel({
  name: "ctcBetas",
  bindings: [float("logProbs", "read"), ...lengths, float("betas", "readwrite")],
  scalars,
  body: () => `${recursion}${head}
  for (var k = 0u; k < s.length; k++) {
    let t = s.length - 1u - k;
    let row = (b * s.length + t) * s.places;
    if (t < steps) {
      for (var p = local; p < used; p += ${workgroup}u) {
        var after = select(${nothing}, 0.0, p + 2u >= used);
        if (t + 1u < steps) {
          let next = row + s.places;
          let x = at_betas(next + p) + emitted(b, t + 1u, p);
          var y = f32(${nothing});
          var z = f32(${nothing});
          if (p + 1u < used) { y = at_betas(next + p + 1u) + emitted(b, t + 1u, p + 1u); }
          if (p + 2u < used) {
            if (skips(b, p + 2u)) { z = at_betas(next + p + 2u) + emitted(b, t + 1u, p + 2u); }
          }
          after = joined(x, y, z);
        }
        store_betas(row + p, max(after, ${nothing}));
      }
    }
    storageBarrier();
    workgroupBarrier();
  }
}
`,
  workgroups: ({ batch }) => linearWorkgroups(batch as number, 1),
  reference(views, values) {
    const [logProbs, , , , betas] = views as KernelView[] & Record<0 | 4, KernelView>;
    const { length, batch, classes, places } = values as unknown as CtcShape & { places: number };
    for (const { b, steps, used, classOf, skips } of samplesOf(views.slice(1, 4), values)) {
      const from = (t: number, p: number): number =>
        (betas[(b * length + t) * places + p] as number) +
        (logProbs[(t * batch + b) * classes + classOf(p)] as number);
      for (let t = steps - 1; t >= 0; t--)
        for (let p = 0; p < used; p++) {
          const after =
            t === steps - 1
              ? p + 2 >= used
                ? 0
                : nothing
              : joined(
                  from(t + 1, p),
                  p + 1 < used ? from(t + 1, p + 1) : nothing,
                  p + 2 < used && skips(p + 2) ? from(t + 1, p + 2) : nothing,
                );
          betas[(b * length + t) * places + p] = Math.max(after, nothing);
        }
    }
  },
});

const gradients: Kernel = defineKernel({
  name: "ctcGradient",
  epilogue: "store",
  bindings: [
    ...lengths,
    float("alphas", "read"),
    float("betas", "read"),
    float("losses", "read"),
    { name: "gradient", access: "write" },
  ],
  scalars,
  body: () => `${common}
fn value(e: u32) -> f32 {
  let c = e % s.classes;
  let b = e / s.classes % s.batch;
  let t = e / s.classes / s.batch;
  if (t >= min(at_inputLengths(b), s.length)) { return 0.0; }
  let used = 2u * min(at_targetLengths(b), s.labels) + 1u;
  let row = (b * s.length + t) * s.places;
  let loss = at_losses(b);
  if ((bitcast<u32>(loss) & 0x7fffffffu) > 0x7f800000u) { return loss; }
  var sum = 0.0;
  for (var p = 0u; p < used; p++) {
    if (class_of(b, p) == c) { sum -= exp(at_alphas(row + p) + at_betas(row + p) + loss); }
  }
  return sum;
}
${linearMain()}
  let count = s.length * s.batch * s.classes;
  if (index * 4u >= count) { return; }
  var values: vec4f;
  for (var l = 0u; l < 4u; l++) {
    if (index * 4u + l < count) { values[l] = value(index * 4u + l); }
  }
  store_gradient(index, values);
}
`,
  workgroups: ({ length, batch, classes }) =>
    linearWorkgroups(Math.ceil(((length as number) * (batch as number) * (classes as number)) / 4)),
  reference(views, values) {
    const [, , , alphas, betas, losses, gradient] = views as KernelView[] &
      Record<3 | 4 | 5 | 6, KernelView>;
    const { length, batch, classes, places } = values as unknown as CtcShape & { places: number };
    gradient.fill(0);
    for (const { b, steps, used, classOf } of samplesOf(views.slice(0, 3), values))
      for (let t = 0; t < steps; t++) {
        const first = (t * batch + b) * classes;
        if (Number.isNaN(losses[b])) gradient.fill(Number.NaN, first, first + classes);
        else
          for (let p = 0; p < used; p++) {
            const at = (b * length + t) * places + p;
            const share = Math.exp(
              (alphas[at] as number) + (betas[at] as number) + (losses[b] as number),
            );
            const e = first + classOf(p);
            gradient[e] = (gradient[e] as number) - share;
          }
      }
  },
});
