import type { Binding, DType, LaunchTarget } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { type TracedDefinition, traceInsideAsOne } from "../dispatch/trace.js";
import { NoSecondDerivativeError, ShapeError } from "../errors.js";
import type { Storage } from "../record/storage.js";
import type { Tensor } from "../tensor/tensor.js";
import { linear } from "./linear.js";
import { matmul } from "./matmul.js";
import { sum } from "./sums.js";
import { cat, narrow, pad, select, slice } from "./windows.js";

// Sequences are [length, batch, features]. The products of all inputs are one launch; each time step then takes two, the product of the
// hidden state and the cell. The number of steps is in no program, so another length compiles nothing.

interface Layer {
  /** From the last time step to the first. */
  readonly reverse: boolean;
  /** Hidden units, without those that fill the last quad. */
  readonly used: number;
}

type Target = LaunchTarget<Storage>;

const scratch = (target: Target, length: number, dtype: DType): Binding<Storage> => ({
  ...{ buffer: target.allocate(bytesFor(dtype, length)), offset: 0, length, dtype },
});

/** The steps of a sequence in the order in which they are computed. */
const stepsOf = (
  [length, batch, hidden]: readonly [number, number, number],
  { reverse, used }: Layer,
): kernels.RecurrentStep[] =>
  Array.from({ length }, (_, order) => ({
    ...{ length, batch, hidden, used, order },
    time: reverse ? length - 1 - order : order,
  }));

const shapeOf = (gates: TensorSpec, hidden: TensorSpec): readonly [number, number, number] => [
  gates.shape[0] as number,
  ...(hidden.shape as readonly [number, number]),
];

const zeros = ({ runtime, dtype }: Tensor, shape: readonly number[]): Tensor =>
  castTo(runtime.one.mul(0), dtype).expand(shape);

const refuseSecond = (name: string) => () => {
  throw new NoSecondDerivativeError(
    `${name} has no second derivative here: compose its cell of other ops, or use no createGraph`,
  );
};

/** The gradients of the weight and the bias of the hidden state, from those of the products that they made. */
function parameterGradients(
  projected: Tensor,
  [output, first]: readonly [Tensor, Tensor],
  { reverse }: Layer,
): [weight: Tensor, bias: Tensor] {
  const [length, batch, hidden] = output.shape as [number, number, number];
  const start = first.reshape([1, batch, hidden]);
  // The state from which each step began.
  const states = reverse
    ? cat([slice(output, 0, { start: 1 }), start])
    : cat([start, slice(output, 0, { end: length - 1 })]);
  const rows = projected.reshape([length * batch, projected.shape[2] as number]);
  const before = states.reshape([length * batch, hidden]);
  return [matmul(rows, before, { transA: true }), sum(rows, 0)];
}

/** [gates, hidden, cell, weight, bias]: the output, the last cell state, and for the gradient all cell states and activated gates. */
const lstmOp: Op<Layer> = defineOp<Layer>({
  name: "lstm",
  castPolicy: "lowerPrecision",
  shape([gates, hidden, cell]) {
    const { dtype } = gates as TensorSpec;
    const [length, batch, units] = shapeOf(gates as TensorSpec, hidden as TensorSpec);
    const states = (count: number): TensorSpec => ({ shape: [count, batch, units], dtype });
    return [states(length), cell as TensorSpec, states(length + 1), gates as TensorSpec];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [gates, first, cell, weight, bias] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const [output, lastCell, cells, activated] = outputs as [Operand, Operand, Operand, Operand];
    const shape = shapeOf(gates, first);
    const [length, m, k] = shape;
    const size = m * k;
    target.launch(copy(cell, { ...cells, length: size }));
    let previous: Binding<Storage> = first;
    for (const step of stepsOf(shape, attributes)) {
      const projected = scratch(target, 4 * size, gates.dtype);
      const product = { a: previous, b: weight, out: projected };
      kernels.matmul(target, product, { m, n: 4 * k, k, transB: true });
      const hidden = scratch(target, size, gates.dtype);
      const operands = { gates, projected, bias, cells, hidden, output, activated };
      target.launch(kernels.lstmCell(operands, step));
      previous = hidden;
    }
    target.launch(copy(cells, lastCell, length * size));
  },
  backward({ inputs, outputs, gradients, attributes }) {
    const [, hidden, , weight] = inputs as [Tensor, Tensor, Tensor, Tensor];
    const [output, lastCell, cells, activated] = outputs as [Tensor, Tensor, Tensor, Tensor];
    const [dy = zeros(output, output.shape), dc = zeros(lastCell, lastCell.shape)] = gradients;
    const [dGates, dHidden, dCell] = lstmBackward.applyAll(
      [dy, dc, cells, activated, weight],
      attributes,
    ) as [Tensor, Tensor, Tensor];
    return [dGates, dHidden, dCell, ...parameterGradients(dGates, [output, hidden], attributes)];
  },
});

const copy = (
  input: Binding<Storage>,
  out: Binding<Storage>,
  offset = 0,
): ReturnType<typeof kernels.stridedCopy<Storage>> =>
  kernels.stridedCopy({ input, out }, { dimensions: [{ size: out.length, stride: 1 }], offset });

/** The gradients of the gates, of the first hidden state and of the first cell state. */
const lstmBackward: Op<Layer> = defineOp<Layer>({
  name: "lstmBackward",
  castPolicy: "none",
  shape: ([, cell, , activated]) => [activated, cell, cell] as TensorSpec[],
  forward({ target, inputs, outputs, attributes }) {
    const [outputGradient, lastCell, cells, activated, weight] = inputs as [
      Operand,
      Operand,
      Operand,
      Operand,
      Operand,
    ];
    const [gatesGradient, firstHidden, firstCell] = outputs as [Operand, Operand, Operand];
    const shape = shapeOf(activated, lastCell);
    const [, m, n] = shape;
    const size = m * n;
    const cellGradient = { ...scratch(target, size, "float32"), shape: lastCell.shape };
    target.launch(kernels.elementwise(kernels.identity, [lastCell], cellGradient));
    let hiddenGradient = zeroed(target, size);
    for (const step of stepsOf(shape, attributes).reverse()) {
      const stepGradient = scratch(target, 4 * size, activated.dtype);
      const operands = { outputGradient, hiddenGradient, cells, activated, cellGradient };
      target.launch(kernels.lstmCellBackward({ ...operands, stepGradient, gatesGradient }, step));
      hiddenGradient = step.order === 0 ? firstHidden : scratch(target, size, "float32");
      const product = { a: stepGradient, b: weight, out: hiddenGradient };
      kernels.matmul(target, product, { m, n, k: 4 * n });
    }
    target.launch(kernels.elementwise(kernels.identity, [cellGradient], firstCell));
  },
  backward: refuseSecond("lstm"),
});

function zeroed(target: Target, length: number): Binding<Storage> {
  const binding = scratch(target, length, "float32");
  target.launch(kernels.fill(binding, 0));
  return binding;
}

/** [gates, hidden, weight, bias]: the output, and what the gradient needs. */
const gruOp: Op<Layer> = defineOp<Layer>({
  name: "gru",
  castPolicy: "lowerPrecision",
  shape([gates, hidden]) {
    const { dtype } = gates as TensorSpec;
    const [length, batch, units] = shapeOf(gates as TensorSpec, hidden as TensorSpec);
    return [1, 5].map((each) => ({ shape: [length, batch, each * units], dtype }));
  },
  forward({ target, inputs, outputs, attributes }) {
    const [gates, first, weight, bias] = inputs as [Operand, Operand, Operand, Operand];
    const [output, saved] = outputs as [Operand, Operand];
    const shape = shapeOf(gates, first);
    const [, m, k] = shape;
    let previous: Binding<Storage> = first;
    for (const step of stepsOf(shape, attributes)) {
      const projected = scratch(target, 3 * m * k, gates.dtype);
      const product = { a: previous, b: weight, out: projected };
      kernels.matmul(target, product, { m, n: 3 * k, k, transB: true });
      const hidden = scratch(target, m * k, gates.dtype);
      const operands = { gates, projected, bias, previous, hidden, output, saved };
      target.launch(kernels.gruCell(operands, step));
      previous = hidden;
    }
  },
  backward({ inputs, outputs, gradients, attributes }) {
    const [, hidden, weight] = inputs as [Tensor, Tensor, Tensor];
    const [output, saved] = outputs as [Tensor, Tensor];
    const [dGates, dProjected, dHidden] = gruBackward.applyAll(
      [gradients[0] as Tensor, saved, hidden, weight],
      attributes,
    ) as [Tensor, Tensor, Tensor];
    return [dGates, dHidden, ...parameterGradients(dProjected, [output, hidden], attributes)];
  },
});

/** The gradients of the gates, of the hidden state's products and of the first hidden state. */
const gruBackward: Op<Layer> = defineOp<Layer>({
  name: "gruBackward",
  castPolicy: "none",
  shape([dy, , hidden]) {
    const { shape, dtype } = dy as TensorSpec;
    const gates = { shape: shape.with(2, 3 * (shape[2] as number)), dtype };
    return [gates, gates, hidden as TensorSpec];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [outputGradient, saved, first, weight] = inputs as [Operand, Operand, Operand, Operand];
    const [gatesGradient, projectedGradient, firstHidden] = outputs as [Operand, Operand, Operand];
    const shape = shapeOf(outputGradient, first);
    const [, m, n] = shape;
    const size = m * n;
    const directGradient = zeroed(target, size);
    let hiddenGradient = zeroed(target, size);
    for (const step of stepsOf(shape, attributes).reverse()) {
      const stepGradient = scratch(target, 3 * size, outputGradient.dtype);
      const operands = { outputGradient, hiddenGradient, saved, directGradient, stepGradient };
      target.launch(
        kernels.gruCellBackward({ ...operands, gatesGradient, projectedGradient }, step),
      );
      hiddenGradient = scratch(target, size, "float32");
      const product = { a: stepGradient, b: weight, out: hiddenGradient };
      kernels.matmul(target, product, { m, n, k: 3 * n });
    }
    const both = [hiddenGradient, directGradient].map((each) => ({ ...each, shape: first.shape }));
    target.launch(kernels.elementwise(kernels.add, both, firstHidden));
  },
  backward: refuseSecond("gru"),
});

/** The parameters of a recurrent layer, in torch's layout: gates one below the other. */
export interface RecurrentWeights {
  /** [gates · hidden, features] */
  readonly weightIh: Tensor;
  /** [gates · hidden, hidden] */
  readonly weightHh: Tensor;
  /** [gates · hidden]. Default: zeros. */
  readonly biasIh?: Tensor | undefined;
  /** [gates · hidden]. Default: zeros. */
  readonly biasHh?: Tensor | undefined;
}

/** Options of {@link gru}. */
export interface GruOptions {
  /** The hidden state before the first step, [batch, hidden]. Default: zeros. */
  readonly hidden?: Tensor | undefined;
  /** From the last time step to the first. Default false. */
  readonly reverse?: boolean;
}

/** Options of {@link lstm}. */
export interface LstmOptions extends GruOptions {
  /** The cell state before the first step, [batch, hidden]. Default: zeros. */
  readonly cell?: Tensor | undefined;
}

/** The results of {@link gru}. */
export interface GruResult {
  /** The hidden states of all time steps, [length, batch, hidden]. */
  readonly output: Tensor;
  /** The hidden state after the last step, [batch, hidden]. */
  readonly hidden: Tensor;
}

/** The results of {@link lstm}. */
export interface LstmResult extends GruResult {
  /** The cell state after the last step, [batch, hidden]. */
  readonly cell: Tensor;
}

const parameters = (states: kinds.ParameterKinds): kinds.ParameterKinds => ({
  x: kinds.tensor,
  weights: kinds.options({
    weightIh: kinds.tensor,
    weightHh: kinds.tensor,
    biasIh: kinds.optional(kinds.tensor),
    biasHh: kinds.optional(kinds.tensor),
  }),
  options: kinds.optionals({ hidden: kinds.tensor, reverse: kinds.flag, ...states }),
});

/** What the ops take: gates of the inputs, states and weights, with units that fill quads. */
interface Prepared {
  readonly gates: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor;
  /** Hidden units, without those that were added. */
  readonly used: number;
  /** A state, or zeros. */
  state(given: Tensor | undefined): Tensor;
  /** Takes away the units that were added. */
  cut(x: Tensor): Tensor;
}

function prepared(op: string, count: number, x: Tensor, weights: RecurrentWeights): Prepared {
  const { weightIh, weightHh, biasIh, biasHh } = weights;
  const [length, batch, features] = x.shape as [number, number, number];
  const hidden = weightHh.shape[1] as number;
  const rows = count * hidden;
  const fits =
    x.rank === 3 &&
    length > 0 &&
    weightIh.shape.join() === [rows, features].join() &&
    weightHh.shape.join() === [rows, hidden].join() &&
    [biasIh, biasHh].every((bias) => !bias || bias.shape.join() === `${rows}`);
  if (!fits)
    throw new ShapeError(
      `${op}: an input [length, batch, features] of shape [${x.shape}] does not fit the weights [${weightIh.shape}] and [${weightHh.shape}] of ${count} gates, and their biases`,
    );
  // Units of zero weights keep the state 0, and change no other.
  const extra = (4 - (hidden % 4)) % 4;
  const widened = (w: Tensor, columns: number): Tensor => {
    if (extra === 0) return w;
    const apart = w.reshape([count, hidden, w.size / rows]);
    const all = pad(apart, [
      [0, 0],
      [0, extra],
      [0, columns],
    ]);
    return all.reshape([
      count * (hidden + extra),
      ...(w.rank === 2 ? [all.shape[2] as number] : []),
    ]);
  };
  const bias = (given: Tensor | undefined): Tensor =>
    given ? widened(given, 0) : zeros(weightHh, [count * (hidden + extra)]);
  const tail = [
    [0, 0],
    [0, extra],
  ] as const;
  return {
    gates: linear(x, widened(weightIh, 0), biasIh && widened(biasIh, 0)),
    weight: widened(weightHh, extra),
    bias: bias(biasHh),
    used: hidden,
    state: (given) => {
      if (!given) return zeros(weightHh, [batch, hidden + extra]);
      if (given.shape.join() !== [batch, hidden].join())
        throw new ShapeError(`${op}: a state is [${batch}, ${hidden}], not [${given.shape}]`);
      return extra === 0 ? given : pad(given, tail);
    },
    cut: (y) => (extra === 0 ? y : narrow(y, y.rank - 1, 0, hidden)),
  };
}

/** The attributes of a recurrent layer in traces of what is inside of composites. */
export interface RecurrentLayer extends Pick<Layer, "reverse"> {
  /** Which operands there are, in order: the input, weights, and states before the first step. */
  readonly operands: readonly ("x" | keyof RecurrentWeights | "hidden" | "cell")[];
}

/** What such a trace says was applied, with the results `output`, `hidden` and, of an LSTM, `cell`. */
export const lstmLayer: TracedDefinition = { name: "lstm", castPolicy: "lowerPrecision" };
export const gruLayer: TracedDefinition = { name: "gru", castPolicy: "lowerPrecision" };

type LayerOperands = Partial<Record<RecurrentLayer["operands"][number], Tensor | undefined>>;

/** Reports a layer as one op: its steps are no ops elsewhere, and its zeros no tensors of a model. */
function tracedLayer<R extends GruResult | LstmResult>(
  definition: TracedDefinition,
  given: LayerOperands,
  reverse: boolean,
  compute: () => R,
): R {
  const there = Object.entries(given).filter((each): each is [keyof LayerOperands, Tensor] =>
    Boolean(each[1]),
  );
  const attributes: RecurrentLayer = { reverse, operands: there.map(([name]) => name) };
  const operands = there.map(([, tensor]) => tensor);
  const resultsOf = (result: R): readonly Tensor[] => Object.values(result);
  return traceInsideAsOne(definition, attributes, operands, compute, resultsOf);
}

const last = (output: Tensor, reverse: boolean): Tensor => select(output, 0, reverse ? 0 : -1);

/**
 * A layer of long short-term memory over a sequence [length, batch, features], as one layer and direction of torch.nn.LSTM: two launches a time
 * step, and two in the backward pass. Under autocast it runs in 16 bits, states included.
 */
export const lstm: Composite<
  (x: Tensor, weights: RecurrentWeights, options?: LstmOptions) => LstmResult
> = composite(
  { name: "lstm", castPolicy: "lowerPrecision", parameters: parameters({ cell: kinds.tensor }) },
  (
    x: Tensor,
    weights: RecurrentWeights,
    { hidden, cell, reverse = false }: LstmOptions = {},
  ): LstmResult => {
    const layer = (): LstmResult => {
      const { gates, weight, bias, used, state, cut } = prepared("lstm", 4, x, weights);
      const operands = [gates, state(hidden), state(cell), weight, bias];
      const [all, lastCell] = lstmOp.applyAll(operands, { reverse, used }) as [Tensor, Tensor];
      const output = cut(all);
      return { output, hidden: last(output, reverse), cell: cut(lastCell) };
    };
    return tracedLayer(lstmLayer, { x, ...weights, hidden, cell }, reverse, layer);
  },
);

/**
 * A layer of gated recurrent units over a sequence [length, batch, features], as one layer and direction of torch.nn.GRU: two launches a time
 * step, and two in the backward pass. Under autocast it runs in 16 bits, states included.
 */
export const gru: Composite<
  (x: Tensor, weights: RecurrentWeights, options?: GruOptions) => GruResult
> = composite(
  { name: "gru", castPolicy: "lowerPrecision", parameters: parameters({}) },
  (
    x: Tensor,
    weights: RecurrentWeights,
    { hidden, reverse = false }: GruOptions = {},
  ): GruResult => {
    const layer = (): GruResult => {
      const { gates, weight, bias, used, state, cut } = prepared("gru", 3, x, weights);
      const output = cut(gruOp.apply([gates, state(hidden), weight, bias], { reverse, used }));
      return { output, hidden: last(output, reverse) };
    };
    return tracedLayer(gruLayer, { x, ...weights, hidden }, reverse, layer);
  },
);
