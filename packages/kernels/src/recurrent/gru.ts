import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import {
  eachValue,
  findQuad,
  gateFunctions,
  type RecurrentStep,
  requireQuads,
  sigmoidOf,
  stepScalars,
  stepScalarTypes,
  tanhOf,
  usedUnits,
} from "./step.js";

/** Operands of {@link gruCell}. Gates are in torch's order: reset, update, new. */
export interface GruCellOperands<B> {
  /** What the sequence adds to the gates, bias included: [length, batch, 3, hidden]. */
  readonly gates: Binding<B>;
  /** What the hidden state adds: [batch, 3, hidden]. */
  readonly projected: Binding<B>;
  /** Added to `projected`: [3, hidden]. */
  readonly bias: Binding<B>;
  /** The hidden state before the step: [batch, hidden]. */
  readonly previous: Binding<B>;
  /** The hidden state after it. */
  readonly hidden: Binding<B>;
  /** Hidden states by time, [length, batch, hidden], of which the step fills one. */
  readonly output: Binding<B>;
  /** For the gradient, [length, batch, 5, hidden]: gates after their functions, the projection of the new gate, the state before. */
  readonly saved: Binding<B>;
}

/** One time step of a GRU (Cho et al. 2014), as torch computes it: n = tanh(x + r · (W h + b)), h = (1 − z) · n + z · h. */
export function gruCell<B>(operands: GruCellOperands<B>, step: RecurrentStep): Launch<B> {
  const { gates, projected, bias, previous, hidden, output, saved } = operands;
  const size = step.batch * step.hidden;
  requireQuads("gruCell", step);
  requireLengths("gruCell", operands, {
    gates: step.length * 3 * size,
    projected: 3 * size,
    bias: 3 * step.hidden,
    previous: size,
    hidden: size,
    output: step.length * size,
    saved: step.length * 5 * size,
  });
  return {
    kernel: forward,
    bindings: [gates, projected, bias, previous, hidden, output, saved],
    scalars: stepScalars(step),
  };
}

/** Operands of {@link gruCellBackward}. */
export interface GruCellBackwardOperands<B> {
  /** Of the outputs: [length, batch, hidden]. */
  readonly outputGradient: Binding<B>;
  /** Of the hidden state, through the projection of the step after this one: [batch, hidden]. */
  readonly hiddenGradient: Binding<B>;
  readonly saved: Binding<B>;
  /** Of the hidden state, past that projection; it becomes that of the step before: [batch, hidden]. */
  readonly directGradient: Binding<B>;
  /** Of the step's projection: [batch, 3, hidden]. */
  readonly stepGradient: Binding<B>;
  /** Of all gates, and of all projections, [length, batch, 3, hidden], of which the step fills one place. */
  readonly gatesGradient: Binding<B>;
  readonly projectedGradient: Binding<B>;
}

/** The gradients of one time step of {@link gruCell}. */
export function gruCellBackward<B>(
  operands: GruCellBackwardOperands<B>,
  step: RecurrentStep,
): Launch<B> {
  const { outputGradient, hiddenGradient, saved, directGradient, stepGradient } = operands;
  return {
    kernel: backward,
    bindings: [
      outputGradient,
      hiddenGradient,
      saved,
      directGradient,
      stepGradient,
      operands.gatesGradient,
      operands.projectedGradient,
    ],
    scalars: stepScalars(step),
  };
}

/** WGSL: the first of the five saved quads. */
const findSaved = "  let q = (s.time * (s.size / s.units) + b) * 5u * s.units + u;\n";

/** The same in elements. */
const savedAt = (
  { units, size, time }: Record<"units" | "size" | "time", number>,
  e: number,
): number => {
  const hidden = units * 4;
  return (time * (size / units) + Math.floor(e / hidden)) * 5 * hidden + (e % hidden);
};

type Scalars = Record<"units" | "size" | "time", number>;
type Views = KernelView[] & Record<0 | 1 | 2 | 3 | 4 | 5 | 6, KernelView>;

const forward: Kernel = defineKernel({
  name: "gruCell",
  bindings: [
    { name: "gates", access: "read" },
    { name: "projected", access: "read" },
    { name: "bias", access: "read" },
    { name: "previous", access: "read" },
    { name: "hidden", access: "write" },
    { name: "output", access: "readwrite" },
    { name: "saved", access: "readwrite" },
  ],
  scalars: stepScalarTypes,
  body: () => `${gateFunctions}${usedUnits}
fn gate(k: u32, x: u32, u: u32) -> vec4f { return of_used(u, load_gates(x + k * s.units)); }
fn projection(k: u32, p: u32, u: u32) -> vec4f {
  return of_used(u, load_projected(p + k * s.units) + load_bias(u + k * s.units));
}
${linearMain()}${findQuad(3)}${findSaved}
  let r = sigmoid_of(gate(0u, x, u) + projection(0u, p, u));
  let z = sigmoid_of(gate(1u, x, u) + projection(1u, p, u));
  let m = projection(2u, p, u);
  let n = tanh_of(gate(2u, x, u) + r * m);
  let before = load_previous(index);
  let y = (1.0 - z) * n + z * before;
  store_hidden(index, y);
  store_output(h, y);
  store_saved(q, r);
  store_saved(q + s.units, z);
  store_saved(q + 2u * s.units, n);
  store_saved(q + 3u * s.units, m);
  store_saved(q + 4u * s.units, before);
}
`,
  workgroups: ({ size }) => linearWorkgroups(size as number),
  reference(views, scalars) {
    const [gates, projected, bias, previous, hidden, output, saved] = views as Views;
    const { units } = scalars as Scalars;
    eachValue(3, scalars, ({ e, u, p, x, h, ofUsed }) => {
      const own = (k: number): number => ofUsed(gates[x + k * units * 4] as number);
      const projection = (k: number): number =>
        ofUsed((projected[p + k * units * 4] as number) + (bias[u + k * units * 4] as number));
      const [r, z] = [sigmoidOf(own(0) + projection(0)), sigmoidOf(own(1) + projection(1))];
      const m = projection(2);
      const n = tanhOf(own(2) + r * m);
      const before = previous[e] as number;
      hidden[e] = (1 - z) * n + z * before;
      output[h] = hidden[e] as number;
      const q = savedAt(scalars as Scalars, e);
      for (const [k, value] of [r, z, n, m, before].entries()) saved[q + k * units * 4] = value;
    });
  },
});

const backward: Kernel = defineKernel({
  name: "gruCellBackward",
  bindings: [
    { name: "outputGradient", access: "read" },
    { name: "hiddenGradient", access: "read" },
    { name: "saved", access: "read" },
    { name: "directGradient", access: "readwrite" },
    { name: "stepGradient", access: "write" },
    { name: "gatesGradient", access: "readwrite" },
    { name: "projectedGradient", access: "readwrite" },
  ],
  scalars: stepScalarTypes,
  body: () => `${usedUnits}
fn store(k: u32, x: u32, p: u32, own: vec4f, projected: vec4f) {
  store_gatesGradient(x + k * s.units, own);
  store_stepGradient(p + k * s.units, projected);
  store_projectedGradient(x + k * s.units, projected);
}
${linearMain()}${findQuad(3)}${findSaved}
  let r = load_saved(q);
  let z = load_saved(q + s.units);
  let n = load_saved(q + 2u * s.units);
  let m = load_saved(q + 3u * s.units);
  let before = load_saved(q + 4u * s.units);
  let dh = of_used(u, load_outputGradient(h) + (load_hiddenGradient(index) + load_directGradient(index)));
  let dn = dh * (1.0 - z) * (1.0 - n * n);
  let dr = dn * m * r * (1.0 - r);
  let dz = dh * (before - n) * z * (1.0 - z);
  store(0u, x, p, dr, dr);
  store(1u, x, p, dz, dz);
  store(2u, x, p, dn, dn * r);
  store_directGradient(index, dh * z);
}
`,
  workgroups: ({ size }) => linearWorkgroups(size as number),
  reference(views, scalars) {
    const [dy, dhNext, saved, direct, step, gates, projected] = views as Views;
    const { units } = scalars as Scalars;
    eachValue(3, scalars, ({ e, p, x, h, ofUsed }) => {
      const q = savedAt(scalars as Scalars, e);
      const [r, z, n, m, before] = [0, 1, 2, 3, 4].map((k) => saved[q + k * units * 4]) as [
        number,
        number,
        number,
        number,
        number,
      ];
      const dh = ofUsed((dy[h] as number) + ((dhNext[e] as number) + (direct[e] as number)));
      const dn = dh * (1 - z) * (1 - n * n);
      const dr = dn * m * r * (1 - r);
      const dz = dh * (before - n) * z * (1 - z);
      for (const [k, value] of [dr, dz, dn].entries()) {
        const inner = k === 2 ? value * r : value;
        gates[x + k * units * 4] = value;
        step[p + k * units * 4] = inner;
        projected[x + k * units * 4] = inner;
      }
      direct[e] = dh * z;
    });
  },
});
