import type { Generator, Runtime, Tensor, Variable } from "@halfstep/tensor/functional";
import { gru, lstm, type RecurrentWeights, squeeze, unsqueeze } from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { defaultUniform } from "../init.js";
import { Module, parameter } from "../module.js";
import { type LSTMResult, type RecurrentStates, requireStates } from "./recurrent.js";

/** Options of {@link LSTMCell} and {@link GRUCell}. */
export interface CellOptions {
  /** Default true. */
  readonly bias?: boolean;
  /** Draws the initial parameters. */
  readonly generator: Generator;
}

/** A cell of one time step. */
abstract class Cell extends Module {
  readonly inputSize: number;
  readonly hiddenSize: number;
  /** [gates · hiddenSize, inputSize] */
  readonly weightIh: Variable;
  /** [gates · hiddenSize, hiddenSize] */
  readonly weightHh: Variable;
  /** [gates · hiddenSize] */
  readonly biasIh: Variable | undefined;
  readonly biasHh: Variable | undefined;

  constructor(
    runtime: Runtime,
    inputSize: number,
    hiddenSize: number,
    { bias = true, generator }: CellOptions,
    gates: number,
  ) {
    super();
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    const rows = gates * hiddenSize;
    const make = (shape: readonly number[], name: string): Variable =>
      parameter(runtime, defaultUniform(shape, generator, hiddenSize), shape, name);
    this.weightIh = make([rows, inputSize], "weightIh");
    this.weightHh = make([rows, hiddenSize], "weightHh");
    this.biasIh = bias ? make([rows], "biasIh") : undefined;
    this.biasHh = bias ? make([rows], "biasHh") : undefined;
  }

  protected get weights(): RecurrentWeights {
    const { weightIh, weightHh, biasIh, biasHh } = this;
    return { weightIh, weightHh, biasIh, biasHh };
  }
}

/** One time step of an LSTM, as torch.nn.LSTMCell. */
export class LSTMCell extends Cell {
  constructor(runtime: Runtime, inputSize: number, hiddenSize: number, options: CellOptions);
  constructor(
    runtime: Runtime,
    inputSize: number,
    hiddenSize: number,
    options: CellOptions,
    ...surplus: readonly unknown[]
  ) {
    requireArguments(
      "new LSTMCell(runtime, inputSize, hiddenSize, { generator, bias? })",
      runtime,
      inputSize,
      hiddenSize,
      options,
      ...surplus,
    );
    super(runtime, inputSize, hiddenSize, options, 4);
  }

  /** @param x [batch, inputSize]; states are [batch, hiddenSize]. Without a batch [inputSize] and [hiddenSize]. */
  forward(x: Tensor, states: RecurrentStates = {}): Omit<LSTMResult, "output"> {
    requireStates("LSTMCell", states);
    if (x.rank === 1) {
      const one = this.forward(unsqueeze(x, 0), {
        hidden: states.hidden && unsqueeze(states.hidden, 0),
        cell: states.cell && unsqueeze(states.cell, 0),
      });
      return { hidden: squeeze(one.hidden, 0), cell: squeeze(one.cell, 0) };
    }
    const { hidden, cell } = lstm(unsqueeze(x, 0), this.weights, states);
    return { hidden, cell };
  }
}

/** One time step of a GRU, as torch.nn.GRUCell. */
export class GRUCell extends Cell {
  constructor(runtime: Runtime, inputSize: number, hiddenSize: number, options: CellOptions);
  constructor(
    runtime: Runtime,
    inputSize: number,
    hiddenSize: number,
    options: CellOptions,
    ...surplus: readonly unknown[]
  ) {
    requireArguments(
      "new GRUCell(runtime, inputSize, hiddenSize, { generator, bias? })",
      runtime,
      inputSize,
      hiddenSize,
      options,
      ...surplus,
    );
    super(runtime, inputSize, hiddenSize, options, 3);
  }

  /** @param x [batch, inputSize]; the state is [batch, hiddenSize]. Without a batch [inputSize] and [hiddenSize]. */
  forward(x: Tensor, hidden?: Tensor): Tensor {
    if (x.rank === 1)
      return squeeze(this.forward(unsqueeze(x, 0), hidden && unsqueeze(hidden, 0)), 0);
    return gru(unsqueeze(x, 0), this.weights, { hidden }).hidden;
  }
}
