import {
  cat,
  dropout,
  type Generator,
  gru,
  lstm,
  type RecurrentWeights,
  type Runtime,
  ShapeError,
  select,
  squeeze,
  stack,
  type Tensor,
  transpose,
  unsqueeze,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { defaultUniform } from "../init.js";
import { Module, parameter } from "../module.js";

/** Options of {@link LSTM} and {@link GRU}: torch's names and defaults. */
export interface RecurrentOptions {
  /** Default 1. */
  readonly numLayers?: number;
  /** Default true. */
  readonly bias?: boolean;
  /** Inputs and outputs are [batch, length, features] instead of [length, batch, features]. Default false, as in torch. */
  readonly batchFirst?: boolean;
  /** Probability with which outputs of all layers but the last are dropped in training. Default 0. */
  readonly dropout?: number;
  /** Reads the sequence in both directions, and joins their outputs. Default false. */
  readonly bidirectional?: boolean;
  /** Draws the initial parameters, and the masks of dropout. */
  readonly generator: Generator;
}

/** The results of {@link GRU}. */
export interface GRUResult {
  /** [length, batch, directions · hiddenSize], or with the batch first. */
  readonly output: Tensor;
  /** The last hidden states, [layers · directions, batch, hiddenSize]. */
  readonly hidden: Tensor;
}

/** The results of {@link LSTM}. */
export interface LSTMResult extends GRUResult {
  /** The last cell states, as `hidden`. */
  readonly cell: Tensor;
}

/** The states before the first step, [layers · directions, batch, hiddenSize]. Default: zeros. */
export interface RecurrentStates {
  readonly hidden?: Tensor | undefined;
  /** Of an LSTM. */
  readonly cell?: Tensor | undefined;
}

type States = readonly [hidden: Tensor, cell?: Tensor];

/**
 * Checks the states that callers without types pass: torch takes a tuple, or a tensor. Results of a call are states of the next.
 *
 * @throws TypeError where they are no object with the members of {@link RecurrentStates}
 */
export function requireStates(layer: "LSTM" | "LSTMCell" | "GRU", states: object): void {
  const kinds = layer === "GRU" ? ["hidden"] : ["hidden", "cell"];
  const given = Object.entries(states).filter(([, state]) => state !== undefined);
  const isRecord = Object.getPrototypeOf(states) === Object.prototype;
  if (!isRecord || given.some(([name]) => name !== "output" && !kinds.includes(name)))
    throw new TypeError(
      `${layer}: the states before the first step are an object: pass { ${kinds.map((kind) => `${kind}: ${kind[0]}0`).join(", ")} }`,
    );
  requireTensors(layer, ...given.map(([, state]) => state));
}

/** A stack of layers of one kind of cell, each in one direction or in both. */
abstract class Recurrent extends Module {
  /** The parameters, under torch's names in camel case: `weightIhL0`, `biasHhL1Reverse`. */
  readonly [name: `weight${string}` | `bias${string}`]: Variable;
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly batchFirst: boolean;
  readonly bidirectional: boolean;
  readonly dropout: number;
  readonly generator: Generator;

  constructor(
    runtime: Runtime,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions,
    gates: number,
  ) {
    super();
    const { bias = true, generator } = options;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    this.numLayers = options.numLayers ?? 1;
    this.batchFirst = options.batchFirst ?? false;
    this.bidirectional = options.bidirectional ?? false;
    this.dropout = options.dropout ?? 0;
    this.generator = generator;
    const rows = gates * hiddenSize;
    for (const suffix of this.#suffixes()) {
      const features = suffix.startsWith("L0") ? inputSize : this.#directions * hiddenSize;
      const shapes: Record<string, readonly number[]> = {
        weightIh: [rows, features],
        weightHh: [rows, hiddenSize],
        ...(bias && { biasIh: [rows], biasHh: [rows] }),
      };
      for (const [name, shape] of Object.entries(shapes)) {
        const values = defaultUniform(shape, generator, hiddenSize);
        const field = name + suffix;
        Object.assign(this, { [field]: parameter(runtime, values, shape, field) });
      }
    }
  }

  get #directions(): 1 | 2 {
    return this.bidirectional ? 2 : 1;
  }

  /** The ends of the names of each layer's and direction's parameters, in torch's order. */
  #suffixes(): string[] {
    const ends = this.bidirectional ? ["", "Reverse"] : [""];
    return Array.from({ length: this.numLayers }, (_, layer) =>
      ends.map((end) => `L${layer}${end}`),
    ).flat();
  }

  /** One layer in one direction. */
  protected abstract layer(
    x: Tensor,
    weights: RecurrentWeights,
    states: { readonly hidden?: Tensor; readonly cell?: Tensor; readonly reverse: boolean },
  ): { readonly output: Tensor; readonly states: States };

  /** All layers: the output, and the last states of each kind, [layers · directions, batch, hiddenSize]. */
  protected run(
    input: Tensor,
    { hidden, cell }: RecurrentStates,
  ): { readonly output: Tensor; readonly states: readonly Tensor[] } {
    requireTensors(this.label, input);
    if (input.rank === 2) {
      const axis = this.batchFirst ? 0 : 1;
      const one = this.run(unsqueeze(input, axis), {
        hidden: hidden && unsqueeze(hidden, 1),
        cell: cell && unsqueeze(cell, 1),
      });
      return {
        output: squeeze(one.output, axis),
        states: one.states.map((state) => squeeze(state, 1)),
      };
    }
    if (input.rank !== 3 || input.shape[2] !== this.inputSize)
      throw new ShapeError(
        `${this.label} needs an input [${this.batchFirst ? "batch, length" : "length, batch"}, ${this.inputSize}], or [length, ${this.inputSize}], not [${input.shape}]`,
      );
    const batch = input.shape[this.batchFirst ? 0 : 1];
    const before = [this.numLayers * this.#directions, batch, this.hiddenSize];
    for (const state of [hidden, cell])
      if (state && state.shape.join() !== before.join())
        throw new ShapeError(
          `${this.label}: states are [layers · directions, batch, hiddenSize] = [${before}], not [${state.shape}]`,
        );
    const states: States[] = [];
    let x = this.batchFirst ? transpose(input, 0, 1) : input;
    for (let layer = 0; layer < this.numLayers; layer++) {
      if (layer > 0 && this.isTraining && this.dropout > 0)
        x = dropout(x, { p: this.dropout, generator: this.generator });
      const outputs = Array.from({ length: this.#directions }, (_, direction) => {
        const place = states.length;
        const result = this.layer(x, this.#weights(layer, direction), {
          reverse: direction === 1,
          ...(hidden && { hidden: select(hidden, 0, place) }),
          ...(cell && { cell: select(cell, 0, place) }),
        });
        states.push(result.states);
        return result.output;
      });
      x = outputs.length === 1 ? (outputs[0] as Tensor) : cat(outputs, 2);
    }
    const kinds = (states[0] as States).map((_, kind) =>
      stack(states.map((each) => each[kind] as Tensor)),
    );
    return { output: this.batchFirst ? transpose(x, 0, 1) : x, states: kinds };
  }

  #weights(layer: number, direction: number): RecurrentWeights {
    const suffix = `L${layer}${direction === 1 ? "Reverse" : ""}`;
    return {
      weightIh: this[`weightIh${suffix}`] as Variable,
      weightHh: this[`weightHh${suffix}`] as Variable,
      biasIh: this[`biasIh${suffix}`],
      biasHh: this[`biasHh${suffix}`],
    };
  }
}

/** Layers of long short-term memory, as torch.nn.LSTM: its names, layouts and order of gates. */
export class LSTM extends Recurrent {
  constructor(runtime: Runtime, inputSize: number, hiddenSize: number, options: RecurrentOptions);
  constructor(
    runtime: Runtime,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions,
    ...surplus: readonly unknown[]
  ) {
    requireArguments(
      "new LSTM(runtime, inputSize, hiddenSize, { generator, numLayers?, bias?, batchFirst?, dropout?, bidirectional? })",
      runtime,
      inputSize,
      hiddenSize,
      options,
      ...surplus,
    );
    super(runtime, inputSize, hiddenSize, options, 4);
  }

  /** @param x [length, batch, inputSize], or with the batch first; one sequence [length, inputSize], whose states and results have no batch. */
  forward(x: Tensor, states: RecurrentStates = {}): LSTMResult {
    requireStates("LSTM", states);
    const { output, states: last } = this.run(x, states);
    const [hidden, cell] = last as [Tensor, Tensor];
    return { output, hidden, cell };
  }

  protected override layer(...args: Parameters<typeof lstm>): {
    readonly output: Tensor;
    readonly states: States;
  } {
    const { output, hidden, cell } = lstm(...args);
    return { output, states: [hidden, cell] };
  }
}

/** Layers of gated recurrent units, as torch.nn.GRU: its names, layouts and order of gates. */
export class GRU extends Recurrent {
  constructor(runtime: Runtime, inputSize: number, hiddenSize: number, options: RecurrentOptions);
  constructor(
    runtime: Runtime,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions,
    ...surplus: readonly unknown[]
  ) {
    requireArguments(
      "new GRU(runtime, inputSize, hiddenSize, { generator, numLayers?, bias?, batchFirst?, dropout?, bidirectional? })",
      runtime,
      inputSize,
      hiddenSize,
      options,
      ...surplus,
    );
    super(runtime, inputSize, hiddenSize, options, 3);
  }

  /** @param x [length, batch, inputSize], or with the batch first; one sequence [length, inputSize], whose state and results have no batch. */
  forward(x: Tensor, states: RecurrentStates = {}): GRUResult {
    requireStates("GRU", states);
    const { output, states: last } = this.run(x, { hidden: states.hidden });
    const [hidden] = last as [Tensor];
    return { output, hidden };
  }

  protected override layer(...args: Parameters<typeof gru>): {
    readonly output: Tensor;
    readonly states: States;
  } {
    const { output, hidden } = gru(...args);
    return { output, states: [hidden] };
  }
}
