import { noGrad, type OpTrace, type Tensor, traceOps, Variable } from "@halfstep/tensor";
import { hostNumbersOf } from "@halfstep/tensor/internals";
import { OnnxError } from "../errors.js";
import { type NamedAxis, type Size, sizeOf } from "./size.js";
import { isTensor, mapTensors, type NamedTensor, namedTensors } from "./tensors-in.js";

/** A tensor of a forward pass. */
interface TracedValue {
  readonly dtype: Tensor["dtype"];
  readonly shape: readonly Size[];
  /** Its sizes in each trace. */
  readonly shapes: readonly (readonly number[])[];
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
  /** Tensors that `forward` makes of the same numbers of the host in every trace, by number. */
  readonly hosts: ReadonlyMap<number, HostNumbers>;
  /** The value of each input. */
  readonly inputs: readonly number[];
  /** The value of each result, with the name that it has among the results. */
  readonly results: readonly { readonly name: string; readonly value: number }[];
  /** The axes whose sizes may change. */
  readonly axes: readonly NamedAxis[];
}

/** Numbers of a tensor that was made of them. */
interface HostNumbers {
  readonly shape: readonly number[];
  readonly values: Float64Array;
}

/** One recording of a forward pass, in its own numbers. */
interface Recorded {
  readonly ops: readonly (Omit<TracedOp, "attributes"> & { readonly attributes: unknown })[];
  readonly tensors: readonly Tensor[];
  readonly hosts: ReadonlyMap<number, HostNumbers>;
  readonly inputs: readonly number[];
  readonly results: ModelTrace["results"];
}

/** An axis whose size may change. */
export interface TracedAxis {
  readonly name: string;
  readonly size: number;
  /** Another size. */
  readonly other: number;
  /** Far sizes, of which the first that fits the model is taken. Near ones may look alike, as the halves of 4 and 5, rounded down. */
  readonly far: readonly number[];
}

/** What a forward pass is traced with. */
export interface TraceRequest {
  readonly inputs: readonly unknown[];
  /** The axes whose sizes may change; those of an input by its place. */
  readonly axes: readonly TracedAxis[];
  readonly axisOf: (input: number, dimension: number) => string | undefined;
  /** Calls the model's `forward`. */
  readonly forward: (inputs: readonly unknown[]) => unknown;
}

/** Traces a forward pass without computing it: once, and again for each axis whose size may change. */
export function traceModel(request: TraceRequest): ModelTrace {
  const sizes = request.axes.map(({ size }) => size);
  const points = [sizes, ...request.axes.map(({ other }, i) => sizes.with(i, other))];
  const traces = points.map((point) => record(request, point));
  const [first, ...others] = traces as [Recorded, ...Recorded[]];
  const other = others.find((trace) => keyOf(trace) !== keyOf(first));
  if (other)
    throw new OnnxError(
      "inputs",
      `the model applies other ops where an axis has another size: fix the sizes of ${request.axes.map(({ name }) => `"${name}"`).join(", ")} by the option axes`,
    );
  for (const [i, { far }] of request.axes.entries())
    for (const size of far) {
      const point = sizes.with(i, size);
      const trace = fitting(request, point);
      if (!trace || keyOf(trace) !== keyOf(first)) continue;
      traces.push(trace);
      points.push(point);
      break;
    }
  const axes = request.axes.map(({ name }, i) => ({
    name,
    sizes: points.map((point) => point[i] as number),
  }));
  const variables = new Map<number, Variable>();
  for (const [value, tensor] of first.tensors.entries())
    if (tensor instanceof Variable) variables.set(value, tensor);
  return {
    ops: first.ops.map((op, i) => ({
      ...op,
      attributes: traces.map((trace) => trace.ops[i]?.attributes),
    })),
    values: first.tensors.map(({ dtype, shape }, value) => {
      const shapes = traces.map(({ tensors }) => (tensors[value] as Tensor).shape);
      const sizesOf = (d: number) => shapes.map((each) => each[d] as number);
      return { dtype, shape: shape.map((_, d) => sizeOf(sizesOf(d), axes)), shapes };
    }),
    variables,
    hosts: new Map(
      [...first.hosts].filter(([value, numbers]) => isEverywhere(traces, value, numbers)),
    ),
    inputs: first.inputs,
    results: first.results,
    axes,
  };
}

const isEverywhere = (
  traces: readonly Recorded[],
  value: number,
  { shape, values }: HostNumbers,
): boolean =>
  traces.every(({ hosts }) => {
    const other = hosts.get(value);
    return (
      other?.shape.join() === shape.join() &&
      values.every((number, i) => Object.is(number, other.values[i]))
    );
  });

/** A recording of sizes that the model may refuse, such as a sequence of more tokens than it has positions. */
function fitting(request: TraceRequest, sizes: readonly number[]): Recorded | undefined {
  try {
    return record(request, sizes);
  } catch {
    return undefined;
  }
}

/** What two traces of one model have in common. */
const keyOf = ({ ops, tensors, results }: Recorded): string =>
  JSON.stringify([
    ops.map(({ name, inputs, outputs }) => [name, inputs, outputs]),
    tensors.map(({ dtype, rank }) => [dtype, rank]),
    results,
  ]);

/** Records one forward pass with zeros, where the named axes have these sizes. */
function record(
  { inputs, axes, axisOf, forward }: TraceRequest,
  axisSizes: readonly number[],
): Recorded {
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
  const sizeIn = (name: string): number =>
    axisSizes[axes.findIndex((axis) => axis.name === name)] as number;
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
    const tensors = [...numbers.keys()];
    const computed = new Set([...given, ...ops.flatMap(({ outputs }) => outputs)]);
    return {
      ops,
      // They are dropped with the recording.
      hosts: new Map(
        tensors.flatMap((tensor, value) => {
          const values = computed.has(value) ? undefined : hostNumbersOf(tensor);
          return values ? [[value, { shape: tensor.shape, values }] as const] : [];
        }),
      ),
      inputs: given,
      results: namedResults(result).map(({ name, tensor }) => ({ name, value: numberOf(tensor) })),
      tensors,
    };
  });
}

function namedResults(result: unknown): readonly NamedTensor[] {
  const found = isTensor(result) ? [{ name: "output", tensor: result }] : namedTensors(result);
  if (found.length === 0) throw new OnnxError("inputs", "forward() returned no tensor");
  return found;
}
