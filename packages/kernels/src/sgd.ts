import type { Binding, Kernel, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import { controlLength } from "./step-control.js";

export interface SgdAttributes {
  readonly momentum: number;
  readonly dampening: number;
  readonly weightDecay: number;
  readonly nesterov: boolean;
  /** Ascends instead of descending. Default false. */
  readonly maximize?: boolean;
}

export interface SgdOperands<B> {
  readonly values: Binding<B>;
  readonly gradients: Binding<B>;
  /** What `stepControl` made. */
  readonly control: Binding<B>;
  /** Absent without momentum. */
  readonly momentumBuffer?: Binding<B>;
  /** A second storage of the values, such as the half copy of float32 masters. */
  readonly copy?: Binding<B>;
}

/**
 * One step of stochastic gradient descent over a flat buffer, as torch.optim.SGD computes it: the first applied step
 * copies the gradient into the momentum buffer, without dampening. Gradients are multiplied by `1 / scale` first.
 * Where the control words say "skip", no bit of any operand changes.
 */
export function sgd<B>(operands: SgdOperands<B>, attributes: SgdAttributes): Launch<B> {
  const { values, gradients, control, momentumBuffer, copy } = operands;
  const { length } = values;
  requireLengths("sgd", operands, {
    values: length,
    gradients: length,
    control: controlLength,
    momentumBuffer: length,
    copy: length,
  });
  return {
    kernel: kernels[momentumBuffer ? (copy ? 3 : 2) : copy ? 1 : 0] as Kernel,
    bindings: [
      ...[values, gradients, control],
      ...(momentumBuffer ? [momentumBuffer] : []),
      ...(copy ? [copy] : []),
    ],
    scalars: {
      count: length,
      sign: attributes.maximize ? -1 : 1,
      momentum: attributes.momentum,
      oneMinusDampening: 1 - attributes.dampening,
      weightDecay: attributes.weightDecay,
      nesterov: Number(attributes.nesterov),
    },
  };
}

function makeKernel(hasMomentum: boolean, hasCopy: boolean): Kernel {
  const bindings: KernelBinding[] = [
    { name: "values", access: "readwrite" },
    { name: "gradients", access: "read" },
    { name: "control", access: "read", dtypes: ["float32"] },
  ];
  if (hasMomentum)
    bindings.push({ name: "momentumBuffer", access: "readwrite", dtypes: ["float32"] });
  if (hasCopy) bindings.push({ name: "copy", access: "readwrite" });
  return defineKernel({
    name: "sgd",
    variant: [hasMomentum ? "momentum" : "", hasCopy ? "copy" : ""].filter(Boolean).join(" "),
    bindings,
    scalars: [
      { name: "count", type: "u32" },
      ...["sign", "momentum", "oneMinusDampening", "weightDecay", "nesterov"].map(
        (name) => ({ name, type: "f32", runtime: true }) as const,
      ),
    ],
    body: () => `${linearMain()}
  let q = index;
  if (q * 4u >= s.count) { return; }
  let control = load_control(0u);
  if (control.x == 0.0) { return; }
  let p0 = load_values(q);
  var g = load_gradients(q) * (control.y * s.sign) + s.weightDecay * p0;
  ${
    hasMomentum
      ? `var b = g;
  if (control.w == 0.0) { b = load_momentumBuffer(q) * s.momentum + s.oneMinusDampening * g; }
  store_momentumBuffer(q, b);
  if (s.nesterov == 1.0) { g += s.momentum * b; } else { g = b; }`
      : ""
  }
  let p = p0 - control.z * g;
  store_values(q, p);
  ${hasCopy ? "store_copy(q, p);" : ""}
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference(views, s) {
      const [values, gradients, control] = views as readonly KernelView[];
      if (!values || !gradients || !control || control[0] === 0) return;
      const buffer = hasMomentum ? (views[3] as KernelView) : undefined;
      const copy = hasCopy ? (views[hasMomentum ? 4 : 3] as KernelView) : undefined;
      const [, inverse, lr, isFirst] = control as unknown as number[];
      const factor = (inverse as number) * (s.sign as number);
      const momentum = s.momentum as number;
      const oneMinusDampening = s.oneMinusDampening as number;
      const weightDecay = s.weightDecay as number;
      for (let i = 0; i < values.length; i++) {
        const p0 = values[i] as number;
        let g = (gradients[i] as number) * factor + weightDecay * p0;
        if (buffer) {
          const b = isFirst ? g : (buffer[i] as number) * momentum + oneMinusDampening * g;
          buffer[i] = b;
          g = s.nesterov ? g + momentum * b : b;
        }
        const p = p0 - (lr as number) * g;
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
