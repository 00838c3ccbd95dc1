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

/** Operands of {@link lstmCell}. Gates are in torch's order: input, forget, cell, output. */
export interface LstmCellOperands<B> {
  /** What the sequence adds to the gates, bias included: [length, batch, 4, hidden]. */
  readonly gates: Binding<B>;
  /** What the hidden state adds: [batch, 4, hidden]. */
  readonly projected: Binding<B>;
  /** [4, hidden] */
  readonly bias: Binding<B>;
  /** Cell states by order of computation, the initial one first: [length + 1, batch, hidden]. The step fills one place. */
  readonly cells: Binding<B>;
  /** The hidden state: [batch, hidden]. */
  readonly hidden: Binding<B>;
  /** Hidden states by time, [length, batch, hidden], of which the step fills one. */
  readonly output: Binding<B>;
  /** Gates after their functions, for the gradient: as `gates`. */
  readonly activated: Binding<B>;
}

/** One time step of an LSTM (Hochreiter and Schmidhuber 1997), as torch computes it: c = f · c + i · g, h = o · tanh(c). */
export function lstmCell<B>(operands: LstmCellOperands<B>, step: RecurrentStep): Launch<B> {
  const { gates, projected, bias, cells, hidden, output, activated } = operands;
  const size = step.batch * step.hidden;
  requireQuads("lstmCell", step);
  requireLengths("lstmCell", operands, {
    gates: step.length * 4 * size,
    projected: 4 * size,
    bias: 4 * step.hidden,
    cells: (step.length + 1) * size,
    hidden: size,
    output: step.length * size,
    activated: step.length * 4 * size,
  });
  return {
    kernel: forward,
    bindings: [gates, projected, bias, cells, hidden, output, activated],
    scalars: stepScalars(step),
  };
}

/** Operands of {@link lstmCellBackward}. */
export interface LstmCellBackwardOperands<B> {
  /** Of the outputs: [length, batch, hidden]. */
  readonly outputGradient: Binding<B>;
  /** Of the hidden state, from the step after this one: [batch, hidden]. */
  readonly hiddenGradient: Binding<B>;
  readonly cells: Binding<B>;
  readonly activated: Binding<B>;
  /** Of the cell state after the step, which becomes that of the one before: [batch, hidden]. */
  readonly cellGradient: Binding<B>;
  /** Of the step's gates: [batch, 4, hidden]. */
  readonly stepGradient: Binding<B>;
  /** Of all gates, [length, batch, 4, hidden], of which the step fills one place. */
  readonly gatesGradient: Binding<B>;
}

/** The gradients of one time step of {@link lstmCell}. */
export function lstmCellBackward<B>(
  operands: LstmCellBackwardOperands<B>,
  step: RecurrentStep,
): Launch<B> {
  const { outputGradient, hiddenGradient, cells, activated, cellGradient } = operands;
  return {
    kernel: backward,
    bindings: [
      outputGradient,
      hiddenGradient,
      cells,
      activated,
      cellGradient,
      operands.stepGradient,
      operands.gatesGradient,
    ],
    scalars: stepScalars(step),
  };
}

const forward: Kernel = defineKernel({
  name: "lstmCell",
  bindings: [
    { name: "gates", access: "read" },
    { name: "projected", access: "read" },
    { name: "bias", access: "read" },
    { name: "cells", access: "readwrite" },
    { name: "hidden", access: "write" },
    { name: "output", access: "readwrite" },
    { name: "activated", access: "readwrite" },
  ],
  scalars: stepScalarTypes,
  body: () => `${gateFunctions}${usedUnits}
fn gate(k: u32, x: u32, p: u32, u: u32) -> vec4f {
  let o = k * s.units;
  return of_used(u, load_gates(x + o) + (load_projected(p + o) + load_bias(u + o)));
}
${linearMain()}${findQuad(4)}
  let i = sigmoid_of(gate(0u, x, p, u));
  let f = sigmoid_of(gate(1u, x, p, u));
  let g = tanh_of(gate(2u, x, p, u));
  let o = sigmoid_of(gate(3u, x, p, u));
  let c = f * load_cells(s.order * s.size + index) + i * g;
  let y = o * tanh_of(c);
  store_cells((s.order + 1u) * s.size + index, c);
  store_hidden(index, y);
  store_output(h, y);
  store_activated(x, i);
  store_activated(x + s.units, f);
  store_activated(x + 2u * s.units, g);
  store_activated(x + 3u * s.units, o);
}
`,
  workgroups: ({ size }) => linearWorkgroups(size as number),
  reference(views, scalars) {
    const [gates, projected, bias, cells, hidden, output, activated] = views as KernelView[] &
      Record<0 | 1 | 2 | 3 | 4 | 5 | 6, KernelView>;
    const { units, size, order } = scalars as Record<"units" | "size" | "order", number>;
    eachValue(4, scalars, ({ e, u, p, x, h, ofUsed }) => {
      const at = (k: number): number => {
        const o = k * units * 4;
        const inner = (projected[p + o] as number) + (bias[u + o] as number);
        return ofUsed((gates[x + o] as number) + inner);
      };
      const [i, f, g, o] = [sigmoidOf(at(0)), sigmoidOf(at(1)), tanhOf(at(2)), sigmoidOf(at(3))];
      const c = f * (cells[order * size * 4 + e] as number) + i * g;
      cells[(order + 1) * size * 4 + e] = c;
      hidden[e] = o * tanhOf(c);
      output[h] = hidden[e] as number;
      for (const [k, value] of [i, f, g, o].entries()) activated[x + k * units * 4] = value;
    });
  },
});

const backward: Kernel = defineKernel({
  name: "lstmCellBackward",
  bindings: [
    { name: "outputGradient", access: "read" },
    { name: "hiddenGradient", access: "read" },
    { name: "cells", access: "read" },
    { name: "activated", access: "read" },
    { name: "cellGradient", access: "readwrite" },
    { name: "stepGradient", access: "write" },
    { name: "gatesGradient", access: "readwrite" },
  ],
  scalars: stepScalarTypes,
  body: () => `${gateFunctions}${usedUnits}
fn store(k: u32, x: u32, p: u32, value: vec4f) {
  store_stepGradient(p + k * s.units, value);
  store_gatesGradient(x + k * s.units, value);
}
${linearMain()}${findQuad(4)}
  let i = load_activated(x);
  let f = load_activated(x + s.units);
  let g = load_activated(x + 2u * s.units);
  let o = load_activated(x + 3u * s.units);
  let t = tanh_of(load_cells((s.order + 1u) * s.size + index));
  let dh = of_used(u, load_outputGradient(h) + load_hiddenGradient(index));
  let dc = load_cellGradient(index) + dh * o * (1.0 - t * t);
  store(0u, x, p, dc * g * i * (1.0 - i));
  store(1u, x, p, dc * load_cells(s.order * s.size + index) * f * (1.0 - f));
  store(2u, x, p, dc * i * (1.0 - g * g));
  store(3u, x, p, dh * t * o * (1.0 - o));
  store_cellGradient(index, dc * f);
}
`,
  workgroups: ({ size }) => linearWorkgroups(size as number),
  reference(views, scalars) {
    const [dy, dhNext, cells, activated, dcNext, step, gates] = views as KernelView[] &
      Record<0 | 1 | 2 | 3 | 4 | 5 | 6, KernelView>;
    const { units, size, order } = scalars as Record<"units" | "size" | "order", number>;
    eachValue(4, scalars, ({ e, p, x, h, ofUsed }) => {
      const [i, f, g, o] = [0, 1, 2, 3].map((k) => activated[x + k * units * 4]) as [
        number,
        number,
        number,
        number,
      ];
      const t = tanhOf(cells[(order + 1) * size * 4 + e] as number);
      const dh = ofUsed((dy[h] as number) + (dhNext[e] as number));
      const dc = (dcNext[e] as number) + dh * o * (1 - t * t);
      const gradients = [
        dc * g * i * (1 - i),
        dc * (cells[order * size * 4 + e] as number) * f * (1 - f),
        dc * i * (1 - g * g),
        dh * t * o * (1 - o),
      ];
      for (const [k, value] of gradients.entries()) {
        step[p + k * units * 4] = value;
        gates[x + k * units * 4] = value;
      }
      dcNext[e] = dc * f;
    });
  },
});
