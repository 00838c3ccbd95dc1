import { noGrad, type OpTrace, type Tensor, traceOps, Variable } from "@halfstep/tensor";
import { OnnxError } from "../errors.js";
import { type NamedAxis, type Size, sizeOf } from "./size.js";
import { isTensor, mapTensors, type NamedTensor, namedTensors } from "./tensors-in.js";

/** A tensor of a forward pass. */
interface TracedValue {
  readonly dtype: Tensor["dtype"];
  readonly shape: readonly Size[];
}

/** The application of an op in a forward pass. Values are numbered. */
export interface TracedOp {
  readonly name: string;
  /** Identifies the op. */
  readonly definition: OpTrace["definition"];
  readonly module: string;
  /** In each trace. */
  readonly attributes: readonly unknown[];
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
}

/** A forward pass. */
export interface ModelTrace {
  readonly ops: readonly TracedOp[];
  readonly values: readonly TracedValue[];
  /** The variables that are read, by number: those of the model, and others that belong to it, such as low-rank adapters. */
  readonly variables: ReadonlyMap<number, Variable>;
  /** The value of each input. */
  readonly inputs: readonly number[];
  /** The value of each result, with the name that it has among the results. */
  readonly results: readonly { readonly name: string; readonly value: number }[];
}

/** One recording of a forward pass, in its own numbers. */
interface Recorded {
  readonly ops: readonly (Omit<TracedOp, "attributes"> & { readonly attributes: unknown })[];
  readonly tensors: readonly Tensor[];
  readonly inputs: readonly number[];
  readonly results: ModelTrace["results"];
}

/** What a forward pass is traced with. */
export interface TraceRequest {
  readonly inputs: readonly unknown[];
  /** The axes whose sizes may change; those of an input by its place. */
  readonly axes: readonly NamedAxis[];
  readonly axisOf: (input: number, dimension: number) => string | undefined;
  /** Calls the model's `forward`. */
  readonly forward: (inputs: readonly unknown[]) => unknown;
}

/** Traces a forward pass without computing it: once, and once more for each axis whose size may change. */
export function traceModel(request: TraceRequest): ModelTrace {
  const { axes } = request;
  const traces = [-1, ...axes.keys()].map((changed) => record(request, changed));
  const [first, ...others] = traces as [Recorded, ...Recorded[]];
  const other = others.find((trace) => keyOf(trace) !== keyOf(first));
  if (other)
    throw new OnnxError(
      "inputs",
      `the model applies other ops where an axis has another size: fix the sizes of ${axes.map(({ name }) => `"${name}"`).join(", ")} by the option axes`,
    );
  const variables = new Map<number, Variable>();
  for (const [value, tensor] of first.tensors.entries())
    if (tensor instanceof Variable) variables.set(value, tensor);
  return {
    ops: first.ops.map((op, i) => ({
      ...op,
      attributes: traces.map((trace) => trace.ops[i]?.attributes),
    })),
    values: first.tensors.map(({ dtype, shape }, value) => ({
      dtype,
      shape: shape.map((_, d) =>
        sizeOf(
          traces.map(({ tensors }) => tensors[value]?.shape[d] as number),
          axes,
        ),
      ),
    })),
    variables,
    inputs: first.inputs,
    results: first.results,
  };
}

/** What two traces of one model have in common. */
const keyOf = ({ ops, tensors, results }: Recorded): string =>
  JSON.stringify([
    ops.map(({ name, inputs, outputs }) => [name, inputs, outputs]),
    tensors.map(({ dtype, rank }) => [dtype, rank]),
    results,
  ]);

/** Records one forward pass with zeros of the wanted sizes; axis number `changed` has its second size. */
function record({ inputs, axes, axisOf, forward }: TraceRequest, changed: number): Recorded {
  const numbers = new Map<Tensor, number>();
  const numberOf = (tensor: Tensor): number => {
    const known = numbers.get(tensor);
    if (known !== undefined) return known;
    numbers.set(tensor, numbers.size);
    return numbers.size - 1;
  };
  const ops: Recorded["ops"][number][] = [];
  const note = ({ op, definition, module, attributes, operands, results }: OpTrace): void => {
    ops.push({
      ...{ name: op, definition, module, attributes },
      inputs: operands.map(numberOf),
      outputs: results.map(numberOf),
    });
  };
  const sizeIn = (name: string): number => {
    const place = axes.findIndex((axis) => axis.name === name);
    return axes[place]?.sizes[place === changed ? 1 : 0] as number;
  };
  const [example] = namedTensors(inputs);
  if (!example) throw new OnnxError("inputs", "toOnnx() needs an example of at least one tensor");
  const { runtime } = example.tensor;
  return runtime.dryRun(() => {
    let place = 0;
    const given: number[] = [];
    const made = mapTensors(inputs, ({ shape, dtype }) => {
      const input = place++;
      const sizes = shape.map((size, d) => {
        const name = axisOf(input, d);
        return name === undefined ? size : sizeIn(name);
      });
      const zeros = runtime.zeros(sizes, { dtype });
      given.push(numberOf(zeros));
      return zeros;
    });
    const result = traceOps(note, () => noGrad(() => forward(made as readonly unknown[])), {
      inside: true,
    });
    return {
      ops,
      inputs: given,
      results: namedResults(result).map(({ name, tensor }) => ({ name, value: numberOf(tensor) })),
      tensors: [...numbers.keys()],
    };
  });
}

function namedResults(result: unknown): readonly NamedTensor[] {
  const found = isTensor(result) ? [{ name: "output", tensor: result }] : namedTensors(result);
  if (found.length === 0) throw new OnnxError("inputs", "forward() returned no tensor");
  return found;
}
