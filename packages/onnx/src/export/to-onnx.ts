import { withRecipe } from "@halfstep/autocast";
import { evaluationMode, type Module, torchPlaces } from "@halfstep/nn";
import type { Variable } from "@halfstep/tensor";
import { dataType, typeOf } from "../data-type.js";
import { OnnxError } from "../errors.js";
import { Emission } from "./emission.js";
import { ExternalWriter } from "./external-writer.js";
import { emitPointwise } from "./formulas.js";
import { GraphBuilder, type Port, type Reference } from "./graph-builder.js";
import {
  type OnnxOptions,
  requireAxes,
  requireImages,
  requireOnnxOptions,
} from "./onnx-options.js";
import { joinResamples } from "./resample.js";
import { structured } from "./structured.js";
import { namedTensors } from "./tensors-in.js";
import { type ModelTrace, type TracedAxis, type TracedOp, traceModel } from "./trace-model.js";
import { ComputedSource, plain, StoredSource, take, type Value } from "./values.js";

/**
 * Writes a model's forward pass as an ONNX file, in evaluation mode. Weights have the names and layouts that they have in torch's state
 * dict. What the pass computes in float16 is float16 there, with weights in float16; casts of autocast become Cast nodes. bfloat16 becomes
 * float32. Nothing is computed, and the model does not change; only weights are read.
 *
 * @param inputs what `forward` takes, as an example
 * @returns the bytes of the file
 * @throws OnnxError that names the op and its module where there is no operator for it, or what an option names that there is not
 * @example
 * const bytes = await toOnnx(model, [runtime.zeros([1, 784])]);
 * await writeFile("model.onnx", bytes);
 */
export async function toOnnx(
  model: Module,
  inputs: readonly unknown[],
  options: OnnxOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  requireOnnxOptions(inputs, options);
  const { opset = 17, recipe } = options;
  const inputNames = namesOf(inputs, options.inputNames, "input");
  const axes = namedAxes(inputs, inputNames, options);
  const trace = inEvaluation(model, () =>
    traceModel({
      inputs,
      axes: axes.all,
      axisOf: axes.axisOf,
      forward: (given) => {
        const run = (): unknown => model.forward(...(given as never[]));
        return recipe ? withRecipe(recipe, run as () => never) : run();
      },
    }),
  );
  const resultNames = trace.results.map(({ name }, place) => options.outputNames?.[place] ?? name);
  requireImages(options, ranksOf(trace, inputNames, resultNames));
  const builder = new GraphBuilder(opset);
  const outside = options.external && new ExternalWriter(options.external);
  const stored = storedSources(model, builder, trace);
  const values = new Map<number, Value>(stored.values);
  const ports = inputNames.map((name, place): Port => {
    const value = trace.inputs[place] as number;
    const { dtype, shape } = trace.values[value] as ModelTrace["values"][number];
    const order = orderIn(options, name, shape.length);
    const [reference, type] = [builder.reference(name), typeOf(dtype)];
    const source = new ComputedSource(builder, { type, order, reference });
    values.set(value, { source, type, view: plain(shape.length), shape, dtype });
    return { reference, type, shape: order.map((d) => shape[d] as Port["shape"][number]) };
  });
  const axisSize = axisSizes(builder, ports);
  for (const op of joinResamples(trace))
    emit(new Emission({ builder, trace, values, axisSize }, op), trace, values);
  const results = trace.results.map(({ value }, place): Port => {
    const result = values.get(value) as Value;
    const wanted = resultNames[place] as string;
    const own = typeOf(result.dtype);
    const isWidened = options.float32Outputs === true && own === dataType.FLOAT16;
    const type = isWidened ? dataType.FLOAT : own;
    builder.scope = "";
    const order = orderIn(options, wanted, result.shape.length);
    const reference = builder.output(wanted, take(result, type, order));
    return { reference, type, shape: order.map((d) => result.shape[d] as Port["shape"][number]) };
  });
  await stored.write(outside);
  return builder.finish(ports, results);
}

/** How many dimensions inputs and results have, by name. */
function ranksOf(
  { inputs, results, values }: ModelTrace,
  inputNames: readonly string[],
  resultNames: readonly string[],
): ReadonlyMap<string, number> {
  const rank = (value: number): number => values[value]?.shape.length ?? 0;
  return new Map([
    ...inputNames.map((name, place) => [name, rank(inputs[place] as number)] as const),
    ...resultNames.map((name, place) => [name, rank(results[place]?.value as number)] as const),
  ]);
}

/** The order of the dimensions of an input or result in the graph. */
const orderIn = ({ channelsFirst }: OnnxOptions, name: string, rank: number): readonly number[] =>
  channelsFirst?.includes(name) ? [0, 3, 1, 2] : plain(rank);

/** Writes one op. */
function emit(emission: Emission, trace: ModelTrace, values: ReadonlyMap<number, Value>): void {
  const { op, builder } = emission;
  builder.scope = op.module;
  for (const input of op.inputs)
    if (!values.has(input))
      throw emission.unsupported(
        `it takes a tensor [${trace.values[input]?.shape.map(({ factor }) => factor)}] that is made in forward() from numbers of the host, which change with the size of an axis: fix that by the option axes, or make it an input`,
      );
  const write = structured.get(op.definition);
  if (write) {
    write(emission);
    return;
  }
  const { pointwise } = op.definition;
  if (!pointwise) throw emission.unsupported("there is no operator for it");
  const scalars = scalarsOf(emission, pointwise, op, trace);
  emitPointwise(emission, pointwise.expression, scalars);
}

function scalarsOf(
  emission: Emission,
  pointwise: NonNullable<TracedOp["definition"]["pointwise"]>,
  { attributes, inputs }: TracedOp,
  trace: ModelTrace,
): readonly number[] {
  const { dtype = "float32" } = trace.values[inputs[0] as number] ?? {};
  const [first = [], ...others] = attributes.map((each) => pointwise.scalars(each, dtype));
  if (others.some((other) => other.join() !== first.join())) throw emission.changing();
  return first;
}

/** Runs `fn` while the model is in evaluation mode. */
function inEvaluation<T>(model: Module, fn: () => T): T {
  const goOn = evaluationMode(model);
  try {
    return fn();
  } finally {
    goOn();
  }
}

function namesOf(
  inputs: readonly unknown[],
  given: readonly string[] | undefined,
  standard: string,
): readonly string[] {
  const found = namedTensors(inputs);
  if (given && given.length !== found.length)
    throw new OnnxError("inputs", `${given.length} names for ${found.length} tensors`);
  const isOne = found.length === 1;
  return found.map(
    ({ name }, place) =>
      given?.[place] ?? (/^\d+$/.test(name) ? (isOne ? standard : `${standard}${name}`) : name),
  );
}

/** The axes whose sizes may change, with sizes for each. */
function namedAxes(
  inputs: readonly unknown[],
  names: readonly string[],
  options: OnnxOptions,
): {
  readonly all: readonly TracedAxis[];
  readonly axisOf: (input: number, dimension: number) => string | undefined;
} {
  const { axes, multiples = {} } = options;
  const axisOf = (input: number, dimension: number): string | undefined =>
    axes ? axes[names[input] as string]?.[dimension] : dimension === 0 ? "batch" : undefined;
  const sizes = new Map<string, number>();
  for (const [input, { tensor }] of namedTensors(inputs).entries())
    for (const [dimension, size] of tensor.shape.entries()) {
      const name = axisOf(input, dimension);
      if (name === undefined) continue;
      const known = sizes.get(name) ?? size;
      if (known !== size)
        throw new OnnxError(
          "inputs",
          `axis "${name}" has size ${known} in one input and ${size} in another`,
        );
      sizes.set(name, size);
    }
  requireAxes(inputs, names, options, sizes);
  // A size of 1 would broadcast, and a longer one may not fit the model.
  const all = [...sizes].map(([name, size]) => {
    const { [name]: step = 1 } = multiples;
    const first = Math.max(Math.ceil(size / step), 2) * step;
    const other = first > 2 * step ? first - step : first + step;
    const half = Math.ceil(first / 2 / step) * step;
    return { name, size: first, other, far: [2 * first + step, ...(half > step ? [half] : [])] };
  });
  return { all, axisOf };
}

/** The sizes of named axes when the graph runs, each from the first input that has it. */
function axisSizes(builder: GraphBuilder, ports: readonly Port[]): (name: string) => Reference {
  const known = new Map<string, Reference>();
  return (name) => {
    const made = known.get(name);
    if (made) return made;
    for (const { reference, shape } of ports) {
      const start = shape.findIndex(({ axes }) => axes.join() === name);
      if (start < 0) continue;
      const size = builder.node("Shape", [reference], { start, end: start + 1 });
      known.set(name, size);
      return size;
    }
    throw new OnnxError("inputs", `no input has an axis "${name}"`);
  };
}

/**
 * The variables and numbers of the host that the trace reads, and how to write those that the graph reads. A variable that is no part of the
 * model, as the matrices of an adapter, has its own name.
 */
function storedSources(
  model: Module,
  builder: GraphBuilder,
  { variables, hosts, values }: ModelTrace,
): {
  readonly values: ReadonlyMap<number, Value>;
  readonly write: (outside?: ExternalWriter) => Promise<void>;
} {
  const places = new Map(torchPlaces(model).map((place) => [place.variable, place]));
  const sources: {
    readonly read: () => Promise<Numbers>;
    readonly shape: readonly number[];
    readonly source: StoredSource;
    readonly reference: Reference;
  }[] = [];
  const made = new Map<number, Value>();
  const add = (
    number: number,
    wanted: string,
    order: readonly number[],
    { read, shape: stored }: Pick<(typeof sources)[number], "read" | "shape">,
  ): void => {
    const { dtype, shape } = values[number] as ModelTrace["values"][number];
    const reference = builder.reference(wanted);
    const source = new StoredSource(dtype, { name: reference.name, order });
    sources.push({ read, shape: stored, source, reference });
    made.set(number, { source, type: source.type, view: plain(shape.length), shape, dtype });
  };
  for (const [number, variable] of variables) {
    const { name, order = plain(variable.rank) } = places.get(variable) ?? {};
    const shape = order.map((d) => variable.shape[d] as number);
    const read = () => numbersIn(variable, order);
    add(number, name ?? (variable.name || "variable"), order, { read, shape });
  }
  for (const [number, { shape, values: numbers }] of hosts)
    add(number, "constant", plain(shape.length), { read: async () => numbers, shape });
  const write = async (outside?: ExternalWriter): Promise<void> => {
    for (const { read, shape, source, reference } of sources) {
      if (!source.isRead) continue;
      builder.scope = source.place.name;
      const type = builder.before(() => source.settle(builder, reference));
      const numbers = await read();
      const values = outside?.takes(type, numbers.length)
        ? await outside.append(type, numbers)
        : numbers;
      builder.store(reference, { type, shape, values });
    }
  };
  return { values: made, write };
}

type Numbers = Awaited<ReturnType<Variable["toArray"]>> | Float64Array;

/** A variable's numbers, with its dimensions in an order. */
async function numbersIn(variable: Variable, order: readonly number[]): Promise<Numbers> {
  if (order.every((d, place) => d === place)) return variable.toArray();
  const laidOut = variable.permute(order);
  const numbers = await laidOut.toArray();
  laidOut.dispose();
  return numbers;
}
