import type { DType } from "@halfstep/device";
import { type DataType, dataType, typeOf } from "../data-type.js";
import type { GraphBuilder, Reference } from "./graph-builder.js";
import type { Size } from "./size.js";

/** One form in which the graph has a value: its type, and of which dimension each dimension is. */
interface Form {
  readonly type: DataType;
  readonly order: readonly number[];
  readonly reference: Reference;
}

/** The forms in which the graph has some numbers; others are made where they are needed. */
interface Source {
  /** The type in which they were computed. */
  readonly type: DataType;
  /** An order in which they are there, or will be, without a node. */
  readonly order: readonly number[];
  take(type: DataType, order: readonly number[]): Reference;
}

/** A tensor of the model: a source under another type, and with its dimensions in another order. */
export interface Value {
  readonly source: Source;
  readonly type: DataType;
  /** Of which dimension of the source each dimension is. */
  readonly view: readonly number[];
  readonly shape: readonly Size[];
  readonly dtype: DType;
}

/** The dimensions in their own order. */
export const plain = (rank: number): readonly number[] => Array.from({ length: rank }, (_, d) => d);

const isSame = (a: readonly number[], b: readonly number[]): boolean => a.join() === b.join();

/** The numbers that a node computes. */
export class ComputedSource implements Source {
  readonly #builder: GraphBuilder;
  readonly #forms: Form[];

  constructor(builder: GraphBuilder, form: Form) {
    this.#builder = builder;
    this.#forms = [form];
  }

  get type(): DataType {
    return (this.#forms[0] as Form).type;
  }
  get order(): readonly number[] {
    return (this.#forms[0] as Form).order;
  }

  take(type: DataType, order: readonly number[]): Reference {
    const known = this.#forms.find((form) => form.type === type && isSame(form.order, order));
    if (known) return known.reference;
    const ofType = this.#forms.find((form) => form.type === type);
    const from = ofType ?? (this.#forms[0] as Form);
    const reference = ofType
      ? transposed(this.#builder, from.reference, from.order, order)
      : this.#builder.node("Cast", [this.take(from.type, order)], { to: type });
    this.#forms.push({ type, order, reference });
    return reference;
  }
}

/** The reference with its dimensions in another order. */
const transposed = (
  builder: GraphBuilder,
  reference: Reference,
  from: readonly number[],
  to: readonly number[],
): Reference =>
  isSame(from, to)
    ? reference
    : builder.node("Transpose", [reference], { perm: to.map((d) => from.indexOf(d)) });

/** The place of a parameter or buffer in the file. */
export interface StoredPlace {
  readonly name: string;
  /** Of which dimension here each dimension in the file is. */
  readonly order: readonly number[];
}

/** A parameter or buffer, which the file holds in the type that its readers take. */
export class StoredSource implements Source {
  readonly type: DataType;
  readonly place: StoredPlace;
  readonly #requests: Form[] = [];

  constructor(dtype: DType, place: StoredPlace) {
    this.type = typeOf(dtype);
    this.place = place;
  }

  get order(): readonly number[] {
    return this.place.order;
  }

  /** Whether any node reads it. */
  get isRead(): boolean {
    return this.#requests.length > 0;
  }

  take(type: DataType, order: readonly number[]): Reference {
    const known = this.#requests.find((form) => form.type === type && isSame(form.order, order));
    if (known) return known.reference;
    const reference = { name: "" };
    this.#requests.push({ type, order, reference });
    return reference;
  }

  /** Names what was taken, and returns the type of the numbers in the file: float16 where all readers take that. */
  settle(builder: GraphBuilder, stored: Reference): DataType {
    const isHalf = this.#requests.every(({ type }) => type === dataType.FLOAT16);
    const type = isHalf ? dataType.FLOAT16 : this.type;
    const source = new ComputedSource(builder, { type, order: this.order, reference: stored });
    for (const { reference, type: wanted, order } of this.#requests)
      reference.name = source.take(wanted, order).name;
    return type;
  }
}

/** The value in a type, with its dimensions in an order. */
export const take = (
  { source, view }: Value,
  type: DataType,
  order: readonly number[],
): Reference =>
  source.take(
    type,
    order.map((d) => view[d] as number),
  );

/** The order of its dimensions in which the graph has a value without a node. */
export const orderOf = ({ source, view }: Value): readonly number[] =>
  source.order.map((d) => view.indexOf(d));
