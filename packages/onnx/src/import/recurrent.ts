import { castTo, type Tensor } from "@halfstep/tensor";
import type { GruResult, LstmResult } from "@halfstep/tensor/functional";
import * as ops from "@halfstep/tensor/functional";
import type { Call, Operator } from "./call.js";

/** The gates of each operator, in torch's order, by their places in ONNX's. */
const gateOrders = {
  LSTM: [0, 2, 3, 1],
  GRU: [1, 0, 2],
} as const;

/** What these operators compute if their file does not say it. */
const activations = {
  LSTM: ["Sigmoid", "Tanh", "Tanh"],
  GRU: ["Sigmoid", "Tanh"],
} as const;

/** Operands, by their places. */
const [lengths, firstHidden, firstCell, peepholes] = [4, 5, 6, 7];

function requireUsual(call: Call, operator: keyof typeof gateOrders, directions: number): void {
  if (call.number("layout", 0) !== 0) throw call.unsupported("layout 1");
  if (call.number("input_forget", 0) !== 0) throw call.unsupported("input_forget");
  if (call.number("clip", 0) !== 0) throw call.unsupported("clip");
  if (call.has(peepholes)) throw call.unsupported("peepholes");
  if (call.has(lengths)) throw call.unsupported("lengths of sequences");
  if (operator === "GRU" && call.number("linear_before_reset", 0) !== 1)
    throw call.unsupported("a reset gate before the product: linear_before_reset must be 1");
  const given = call.texts("activations");
  const usual = Array.from({ length: directions }, () => activations[operator]).flat();
  if (given && given.join().toLowerCase() !== usual.join().toLowerCase())
    throw call.unsupported(`activations ${given.join(", ")}`);
}

/** Layers of recurrent networks in one direction or both, as torch exports them. */
export const recurrentLayer =
  (operator: keyof typeof gateOrders): Operator =>
  (call) => {
    const direction = call.text("direction", "forward");
    const reversals = direction === "bidirectional" ? [false, true] : [direction === "reverse"];
    requireUsual(call, operator, reversals.length);
    const gates = gateOrders[operator];
    const x = call.tensor(0);
    const given = (place: number, index: number): Tensor =>
      castTo(ops.select(call.tensor(place), 0, index), x.dtype);
    /** Parameters [gates · hidden, ...] with the gates in torch's order. */
    const ordered = (w: Tensor): Tensor => {
      const size = (w.shape[0] as number) / gates.length;
      return ops.cat(gates.map((gate) => ops.narrow(w, 0, gate * size, size)));
    };
    const results = reversals.map((reverse, index): GruResult | LstmResult => {
      const weightHh = ordered(given(2, index));
      const rows = weightHh.shape[0] as number;
      const bias = (start: number): Tensor | undefined =>
        call.has(3) ? ordered(ops.narrow(given(3, index), 0, start, rows)) : undefined;
      const weights = {
        ...{ weightIh: ordered(given(1, index)), weightHh },
        ...{ biasIh: bias(0), biasHh: bias(rows) },
      };
      const hidden = call.has(firstHidden) ? given(firstHidden, index) : undefined;
      if (operator === "GRU") return ops.gru(x, weights, { hidden, reverse });
      const cell = call.has(firstCell) ? given(firstCell, index) : undefined;
      return ops.lstm(x, weights, { hidden, cell, reverse });
    });
    const all = ops.stack(
      results.map(({ output }) => output),
      1,
    );
    const cells = results.flatMap((each) => ("cell" in each ? [each.cell] : []));
    const hidden = results.map((each) => each.hidden);
    return [all, ops.stack(hidden), ...(cells.length > 0 ? [ops.stack(cells)] : [])];
  };
