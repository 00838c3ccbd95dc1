import type { Binding, Kernel, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import { controlLength } from "./step-control.js";

export interface AdamWAttributes {
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
  /** Ascends instead of descending. Default false. */
  readonly maximize?: boolean;
}

export interface AdamWOperands<B> {
  readonly values: Binding<B>;
  readonly gradients: Binding<B>;
  readonly expAvg: Binding<B>;
  readonly expAvgSq: Binding<B>;
  /** What `stepControl` made; its row is `[lr, 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t), 0]`. */
  readonly control: Binding<B>;
  /** Present for AMSGrad: the largest `expAvgSq` so far. */
  readonly maxExpAvgSq?: Binding<B>;
  /** A second storage of the values, such as the half copy of float32 masters. */
  readonly copy?: Binding<B>;
}

/**
 * One AdamW step over a flat buffer, as torch.optim.AdamW computes it (decoupled weight decay, Loshchilov and Hutter
 * 2019). Gradients are multiplied by `1 / scale` first. Where the control words say "skip", no bit of any operand
 * changes. Values may be stored in 16 bits, rounded to nearest even; moments are float32.
 */
export function adamw<B>(operands: AdamWOperands<B>, attributes: AdamWAttributes): Launch<B> {
  const { values, gradients, expAvg, expAvgSq, control, maxExpAvgSq, copy } = operands;
  const { length } = values;
  requireLengths("adamw", operands, {
    values: length,
    gradients: length,
    expAvg: length,
    expAvgSq: length,
    control: controlLength,
    maxExpAvgSq: length,
    copy: length,
  });
  const [beta1, beta2] = attributes.betas;
  return {
    kernel: kernels[maxExpAvgSq ? (copy ? 3 : 2) : copy ? 1 : 0] as Kernel,
    bindings: [
      ...[values, gradients, expAvg, expAvgSq, control],
      ...(maxExpAvgSq ? [maxExpAvgSq] : []),
      ...(copy ? [copy] : []),
    ],
    scalars: {
      count: length,
      sign: attributes.maximize ? -1 : 1,
      oneMinusBeta1: 1 - beta1,
      beta2,
      oneMinusBeta2: 1 - beta2,
      eps: attributes.eps,
      weightDecay: attributes.weightDecay,
    },
  };
}

const moment = { access: "readwrite", dtypes: ["float32"] } as const;

function makeKernel(hasMaximum: boolean, hasCopy: boolean): Kernel {
  const bindings: KernelBinding[] = [
    { name: "values", access: "readwrite" },
    { name: "gradients", access: "read" },
    { name: "expAvg", ...moment },
    { name: "expAvgSq", ...moment },
    { name: "control", access: "read", dtypes: ["float32"] },
  ];
  if (hasMaximum) bindings.push({ name: "maxExpAvgSq", ...moment });
  if (hasCopy) bindings.push({ name: "copy", access: "readwrite" });
  return defineKernel({
    name: "adamw",
    variant: [hasMaximum ? "amsgrad" : "", hasCopy ? "copy" : ""].filter(Boolean).join(" "),
    bindings,
    scalars: [
      { name: "count", type: "u32" },
      ...["sign", "oneMinusBeta1", "beta2", "oneMinusBeta2", "eps", "weightDecay"].map(
        (name) => ({ name, type: "f32", runtime: true }) as const,
      ),
    ],
    body: () => `${linearMain()}
  let q = index;
  if (q * 4u >= s.count) { return; }
  let control = load_control(0u);
  if (control.x == 0.0) { return; }
  let row = load_control(1u);
  let g = load_gradients(q) * (control.y * s.sign);
  let m0 = load_expAvg(q);
  let m = m0 + s.oneMinusBeta1 * (g - m0);
  let v = load_expAvgSq(q) * s.beta2 + s.oneMinusBeta2 * (g * g);
  ${
    hasMaximum
      ? "let u0 = load_maxExpAvgSq(q);\n  let u = select(v, u0, u0 > v);\n  store_maxExpAvgSq(q, u);"
      : "let u = v;"
  }
  let step = m / (sqrt(u) * row.z + s.eps);
  let p = load_values(q) * (1.0 - control.z * s.weightDecay) - (control.z * row.y) * step;
  store_expAvg(q, m);
  store_expAvgSq(q, v);
  store_values(q, p);
  ${hasCopy ? "store_copy(q, p);" : ""}
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference(views, s) {
      const [values, gradients, expAvg, expAvgSq, control] = views as readonly KernelView[];
      if (!values || !gradients || !expAvg || !expAvgSq || !control || control[0] === 0) return;
      const maximum = hasMaximum ? (views[5] as KernelView) : undefined;
      const copy = hasCopy ? (views[hasMaximum ? 6 : 5] as KernelView) : undefined;
      const [, inverse, lr, , , rate1, rate2] = control as unknown as number[];
      const factor = (inverse as number) * (s.sign as number);
      const decay = 1 - (lr as number) * (s.weightDecay as number);
      const stepSize = (lr as number) * (rate1 as number);
      const oneMinusBeta1 = s.oneMinusBeta1 as number;
      const beta2 = s.beta2 as number;
      const oneMinusBeta2 = s.oneMinusBeta2 as number;
      const eps = s.eps as number;
      for (let i = 0; i < values.length; i++) {
        const g = (gradients[i] as number) * factor;
        const m0 = expAvg[i] as number;
        const m = m0 + oneMinusBeta1 * (g - m0);
        const v = (expAvgSq[i] as number) * beta2 + oneMinusBeta2 * g * g;
        let u = v;
        if (maximum) {
          const u0 = maximum[i] as number;
          if (u0 > v) u = u0;
          maximum[i] = u;
        }
        const p =
          (values[i] as number) * decay - (stepSize * m) / (Math.sqrt(u) * (rate2 as number) + eps);
        expAvg[i] = m;
        expAvgSq[i] = v;
        values[i] = p;
        if (copy) copy[i] = p;
      }
    },
  });
}

const kernels: readonly Kernel[] = [
  makeKernel(false, false),
  makeKernel(false, true),
  makeKernel(true, false),
  makeKernel(true, true),
];
