import { isFloating } from "@halfstep/formats/dtypes";
import { castTo, type Runtime, Tensor } from "@halfstep/tensor";
import { OnnxError } from "../errors.js";
import type { AttributeValue, GraphNode } from "./graph-node.js";
import { HostTensor } from "./host-tensor.js";
import { integerDType } from "./integers.js";

/** A value of a running graph: on the device, or on the host where it follows from shapes and constants alone. */
export type OnnxValue = Tensor | HostTensor;

/** Operators that only compare their operands or choose among them: a bound beyond 32 bits is as good as the last number of 32 bits. */
const keepsOrder: ReadonlySet<string> = new Set([
  ...["Max", "Min", "Clip", "Where"],
  ...["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"],
]);

/** One operator with its operands, as its implementation sees it. */
export class Call {
  readonly node: GraphNode;
  readonly opset: number;
  readonly runtime: Runtime;
  readonly inputs: readonly (OnnxValue | undefined)[];

  constructor(
    node: GraphNode,
    graph: { readonly opset: number; readonly runtime: Runtime },
    inputs: readonly (OnnxValue | undefined)[],
  ) {
    this.node = node;
    this.opset = graph.opset;
    this.runtime = graph.runtime;
    this.inputs = inputs;
  }

  /** The same operator with other operands. */
  with(inputs: readonly (OnnxValue | undefined)[]): Call {
    return new Call(this.node, this, inputs);
  }

  /** The error of what this operator is used for and is not supported. */
  unsupported(what: string): OnnxError {
    const { name, operator } = this.node;
    return new OnnxError("unsupported", `${operator} ${name}: ${what}`, [operator]);
  }

  /** The error of an op that refused the operands. */
  misfit({ message }: Error): OnnxError {
    const { name, operator } = this.node;
    return new OnnxError("inputs", `${operator} ${name} cannot be computed: ${message}`);
  }

  malformed(what: string): OnnxError {
    return new OnnxError("malformed", `${this.node.operator} ${this.node.name}: ${what}`);
  }

  number(name: string, standard: number): number {
    const value = this.#attribute(name);
    if (value === undefined) return standard;
    if (typeof value !== "number") throw this.malformed(`attribute ${name} is no number`);
    return value;
  }

  numbers(name: string): readonly number[] | undefined {
    const value = this.#attribute(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value) || value.some((each) => typeof each !== "number"))
      throw this.malformed(`attribute ${name} is no list of numbers`);
    return value as readonly number[];
  }

  text(name: string, standard: string): string {
    const value = this.#attribute(name);
    if (value === undefined) return standard;
    if (typeof value !== "string") throw this.malformed(`attribute ${name} is no text`);
    return value;
  }

  texts(name: string): readonly string[] | undefined {
    const value = this.#attribute(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value) || value.some((each) => typeof each !== "string"))
      throw this.malformed(`attribute ${name} is no list of texts`);
    return value as readonly string[];
  }

  #attribute(name: string): AttributeValue | undefined {
    return this.node.attributes.get(name);
  }

  has(place: number): boolean {
    return this.inputs[place] !== undefined;
  }

  value(place: number): OnnxValue {
    const value = this.inputs[place];
    if (!value) throw this.malformed(`operand ${place + 1} is missing`);
    return value;
  }

  shapeOf(place: number): readonly number[] {
    return this.value(place).shape;
  }

  /** An axis, of which negative ones count from the end. */
  axis(axis: number, rank: number): number {
    const d = axis < 0 ? axis + rank : axis;
    if (!(d >= 0 && d < rank)) throw this.malformed(`axis ${axis} of ${rank} dimensions`);
    return d;
  }

  /** An operand on the device. Constants take the dtype of the first floating operand. */
  tensor(place: number): Tensor {
    return this.toTensor(this.value(place));
  }

  toTensor(value: OnnxValue): Tensor {
    if (value instanceof Tensor) return value;
    const { shape, values, isFloat } = value;
    if (isFloat)
      return castTo(this.runtime.tensor(Float32Array.from(values), shape), this.floatDType);
    return this.runtime.tensor(this.#in32Bits(value), shape);
  }

  /** Integers of a constant as the dtype of its type holds them. */
  #in32Bits({ type, list }: HostTensor): Int32Array | Uint32Array {
    const isSigned = integerDType(type) === "int32";
    const [least, most] = isSigned ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
    const tooLarge = list.find((n) => !(n >= least && n <= most));
    if (tooLarge !== undefined && !keepsOrder.has(this.node.operator))
      throw this.unsupported(`the constant ${tooLarge}, which 32 bits do not hold`);
    const within = list.map((n) => Math.min(Math.max(n, least), most));
    return isSigned ? Int32Array.from(within) : Uint32Array.from(within);
  }

  /** The dtype in which constants meet the floating operands. */
  get floatDType(): Tensor["dtype"] {
    const floats = this.inputs.filter(
      (x): x is Tensor => x instanceof Tensor && isFloating(x.dtype),
    );
    return floats[0]?.dtype ?? "float32";
  }

  /** Numbers that have to be known on the host: axes, sizes, places. */
  list(place: number, what: string): readonly number[] {
    const value = this.value(place);
    if (value instanceof HostTensor) return value.list;
    throw this.unsupported(`its ${what} depends on numbers of the device`);
  }

  /** The same, where the operand may be missing. */
  optionalList(place: number, what: string): readonly number[] | undefined {
    return this.has(place) ? this.list(place, what) : undefined;
  }

  /** The number of a constant of one element; undefined for other values. */
  scalar(place: number): number | undefined {
    const value = this.inputs[place];
    return value instanceof HostTensor && value.values.length === 1 ? value.values[0] : undefined;
  }
}

/** What an operator computes: its results, or the one that it has. */
export type Operator = (call: Call) => OnnxValue | readonly OnnxValue[];
