import type { DType } from "@halfstep/device";
import { type DataType, dataType, nameOfType, typeOf } from "../data-type.js";
import { OnnxError } from "../errors.js";
import type { GraphBuilder, Reference } from "./graph-builder.js";
import { isConstant, type Size, sizeOf } from "./size.js";
import type { ModelTrace, TracedOp } from "./trace-model.js";
import { ComputedSource, orderOf, plain, take, type Value } from "./values.js";

/** How an operand is taken. */
export interface Taken {
  /** Default: its own. */
  readonly type?: DataType;
  /** Of which dimension of the operand each dimension is. Default: the operand's own order. */
  readonly order?: readonly number[];
}

/** How a result is given. */
interface Given extends Taken {
  /** Which of the op's results it is. Default 0. */
  readonly output?: number;
}

/** Whether two attributes are equal, except for members of these names. */
function isEqual(a: unknown, b: unknown, except: readonly string[] = []): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  const memberOf = (of: object, name: string): unknown => of[name as keyof typeof of];
  return [...names].every(
    (name) => except.includes(name) || isEqual(memberOf(a, name), memberOf(b, name)),
  );
}

/** The application of an op on its way into a graph. */
export class Emission {
  readonly builder: GraphBuilder;
  readonly op: TracedOp;
  readonly #trace: ModelTrace;
  readonly #values: Map<number, Value>;
  readonly #axisSize: (name: string) => Reference;

  constructor(
    graph: {
      readonly builder: GraphBuilder;
      readonly trace: ModelTrace;
      readonly values: Map<number, Value>;
      /** The size of a named axis, [1], when the graph runs. */
      readonly axisSize: (name: string) => Reference;
    },
    op: TracedOp,
  ) {
    this.builder = graph.builder;
    this.op = op;
    this.#trace = graph.trace;
    this.#values = graph.values;
    this.#axisSize = graph.axisSize;
  }

  /**
   * The attributes, which are those of every trace.
   *
   * @param sizes members that may differ between the traces, and have to be asked for by {@link size}
   */
  attributes<A>(...sizes: readonly (keyof A & string)[]): A {
    const [first, ...others] = this.op.attributes;
    if (others.some((other) => !isEqual(first, other, sizes))) throw this.changing();
    return first as A;
  }

  /** The attributes in each trace. */
  everyAttributes<A>(): readonly A[] {
    return this.op.attributes as readonly A[];
  }

  /** A number that the attributes of each trace contain, as a size. */
  size<A>(numberIn: (attributes: A) => number): Size {
    return sizeOf(
      this.op.attributes.map((attributes) => numberIn(attributes as A)),
      this.#trace.axes,
    );
  }

  get inputCount(): number {
    return this.op.inputs.length;
  }

  input(place: number): Value {
    return this.#values.get(this.op.inputs[place] as number) as Value;
  }

  /** The shape of an operand in each trace. */
  shapesOf(place: number): readonly (readonly number[])[] {
    return this.#trace.values[this.op.inputs[place] as number]?.shapes ?? [];
  }

  /** A size that a node has as an attribute. */
  constant(size: Size): number {
    if (!isConstant(size)) throw this.changing();
    return size.factor;
  }

  /** The shape of a result. */
  shapeOf(output = 0): readonly Size[] {
    return this.#trace.values[this.op.outputs[output] as number]?.shape ?? [];
  }

  /** The type in which a result is written. */
  typeOf(output = 0): DataType {
    return typeOf(this.dtypeOf(output));
  }

  /** The dtype of a result in the model. */
  dtypeOf(output = 0): DType {
    return this.#trace.values[this.op.outputs[output] as number]?.dtype ?? "float32";
  }

  /** An operand of a node. */
  take(place: number, { type, order }: Taken = {}): Reference {
    const value = this.input(place);
    return take(value, type ?? value.type, order ?? plain(value.shape.length));
  }

  /** Appends a node. */
  node(...given: Parameters<GraphBuilder["node"]>): Reference {
    return this.builder.node(...given);
  }

  /** What a node gives in one type, in another. */
  cast(x: Reference, from: DataType, to: DataType): Reference {
    return from === to ? x : this.node("Cast", [x], { to });
  }

  /** A constant scalar. */
  number(type: DataType, value: number): Reference {
    if (type === dataType.INT64 && !Number.isInteger(value))
      throw this.unsupported(`integers meet the number ${value}: cast them to float32`);
    return this.builder.constant(type, value);
  }

  /** A constant vector of whole numbers, as nodes take axes and sizes. */
  integers(values: readonly number[]): Reference {
    return this.builder.constant(dataType.INT64, values);
  }

  /** Sizes as a vector, computed when the graph runs where they are no constants. */
  sizes(sizes: readonly Size[]): Reference {
    if (sizes.every(isConstant)) return this.integers(sizes.map(({ factor }) => factor));
    const parts = sizes.map((size) => this.#vectorOf(size));
    return parts.length === 1 ? (parts[0] as Reference) : this.node("Concat", parts, { axis: 0 });
  }

  #vectorOf(size: Size): Reference {
    if (!size.isKnown)
      throw this.unsupported(
        "a size that is no product of the sizes of axes: fix these by the option axes",
      );
    const { factor, axes } = size;
    const parts = axes.map((name) => this.#axisSize(name));
    if (factor !== 1 || parts.length === 0) parts.push(this.integers([factor]));
    return parts.reduce((product, part) => this.node("Mul", [product, part]));
  }

  /** Sets a result: a value of the graph, with its dimensions in an order. */
  result(
    reference: Reference,
    {
      output = 0,
      type = this.typeOf(output),
      order = plain(this.shapeOf(output).length),
    }: Given = {},
  ): void {
    const source = new ComputedSource(this.builder, { type, order, reference });
    this.alias({ source, type, view: plain(order.length) }, output);
  }

  /** Sets a result that has a source already. */
  alias(value: Pick<Value, "source" | "type" | "view">, output = 0): void {
    const number = this.op.outputs[output] as number;
    const { shape, dtype } = this.#trace.values[number] as ModelTrace["values"][number];
    this.#values.set(number, { ...value, shape, dtype });
  }

  /** The axes of the graph's operand for axes of the tensor, where the operand has its dimensions in an order. */
  placesOf(axes: readonly number[], order: readonly number[]): readonly number[] {
    return axes.map((axis) => order.indexOf(axis)).sort((a, b) => a - b);
  }

  /** The order in which the graph has an operand. */
  orderOf(place: number): readonly number[] {
    return orderOf(this.input(place));
  }

  /** The error of an op that cannot be written. */
  unsupported(what: string): OnnxError {
    const { name, module } = this.op;
    const where = module === "" ? "the model" : module;
    return new OnnxError("unsupported", `${name} of ${where} cannot be written as ONNX: ${what}`, [
      name,
    ]);
  }

  /** The error of a number that nodes have as a constant, and that is none. */
  changing(): OnnxError {
    return this.unsupported(
      "a number in it changes with the size of an axis: fix that by the option axes",
    );
  }

  /** Throws where an operand is not of floating-point numbers. */
  requireFloats(): void {
    const type = this.input(0).type;
    if (type !== dataType.FLOAT && type !== dataType.FLOAT16)
      throw this.unsupported(`arithmetic of integers (${nameOfType(type)})`);
  }
}
