import type { RecurrentLayer } from "@halfstep/tensor/internals";
import { dataType } from "../data-type.js";
import type { Emission } from "./emission.js";
import type { Reference } from "./graph-builder.js";
import type { Size } from "./size.js";

/** The gates of each operator, in ONNX's order, by their places in torch's. */
const gateOrders = {
  // Input, output, forget and cell.
  LSTM: [0, 3, 1, 2],
  // Update, reset and new.
  GRU: [1, 0, 2],
} as const;

/**
 * A layer in one direction. Runtimes compute the order of its weights once: the file has them as torch's state dict does. Halves are
 * computed in float32, for which runtimes have kernels.
 */
export const emitLayer =
  (operator: keyof typeof gateOrders) =>
  (emission: Emission): void => {
    const { reverse, operands } = emission.attributes<RecurrentLayer>();
    const gates = gateOrders[operator];
    const { type } = emission.input(0);
    const hidden = emission.constant(emission.input(operands.indexOf("weightHh")).shape[1] as Size);
    const rows = gates.length * hidden;
    const given = (name: RecurrentLayer["operands"][number]): Reference | undefined => {
      const place = operands.indexOf(name);
      if (place < 0) return undefined;
      return emission.cast(emission.take(place, { type }), type, dataType.FLOAT);
    };
    /** Parameters [gates · hidden, ...] as [1, gates · hidden, ...], with the gates in ONNX's order. */
    const ordered = (x: Reference, more: readonly number[]): Reference => {
      const apart = emission.node("Reshape", [
        x,
        emission.integers([gates.length, hidden, ...more]),
      ]);
      const turned = emission.node("Gather", [apart, emission.integers(gates)], { axis: 0 });
      return emission.node("Reshape", [turned, emission.integers([1, rows, ...more])]);
    };
    const weight = (name: "weightIh" | "weightHh"): Reference => {
      const columns = emission.constant(emission.input(operands.indexOf(name)).shape[1] as Size);
      return ordered(given(name) as Reference, [columns]);
    };
    const bias = (name: "biasIh" | "biasHh"): Reference => {
      const own = given(name);
      if (own) return ordered(own, []);
      return emission.node("Expand", [
        emission.number(dataType.FLOAT, 0),
        emission.integers([1, rows]),
      ]);
    };
    const hasBias = operands.includes("biasIh") || operands.includes("biasHh");
    const biases = hasBias
      ? emission.node("Concat", [bias("biasIh"), bias("biasHh")], { axis: 1 })
      : undefined;
    const state = (name: "hidden" | "cell"): Reference | undefined => {
      const own = given(name);
      return own && emission.node("Unsqueeze", [own, emission.integers([0])]);
    };
    const states = [state("hidden"), ...(operator === "LSTM" ? [state("cell")] : [])];
    const inputs = [
      ...[given("x"), weight("weightIh"), weight("weightHh"), biases],
      // The lengths of sequences: all are whole.
      ...[undefined, ...states],
    ];
    while (inputs.at(-1) === undefined) inputs.pop();
    const results = emission.builder.nodeOf(emission.op.outputs.length, operator, inputs, {
      hidden_size: hidden,
      direction: reverse ? "reverse" : "forward",
      // As torch: the reset gate acts behind the product.
      ...(operator === "GRU" && { linear_before_reset: 1 }),
    });
    // All have an axis of directions.
    for (const [output, each] of results.entries()) {
      const axis = emission.integers([output === 0 ? 1 : 0]);
      const result = emission.node("Squeeze", [each, axis]);
      emission.result(emission.cast(result, dataType.FLOAT, type), { type, output });
    }
  };
