import { type DataType, dataType } from "../data-type.js";

/** Numbers on the host: a constant of the file, or a shape that was computed from others. Integers are whole numbers. */
export class HostTensor {
  readonly type: DataType;
  readonly shape: readonly number[];
  #values: ArrayLike<number> | (() => ArrayLike<number>);

  /** @param values the numbers, or what reads them when they are first wanted */
  constructor(
    type: DataType,
    shape: readonly number[],
    values: ArrayLike<number> | (() => ArrayLike<number>),
  ) {
    this.type = type;
    this.shape = shape;
    this.#values = values;
  }

  get values(): ArrayLike<number> {
    if (typeof this.#values === "function") this.#values = this.#values();
    return this.#values;
  }

  /** The number of elements. */
  get size(): number {
    return countOf(this.shape);
  }

  get isFloat(): boolean {
    return isFloatType(this.type);
  }

  /** The numbers as a list, for shapes and axes. */
  get list(): readonly number[] {
    return Array.from(this.values);
  }

  /** A vector of int64. */
  static integers(
    values: readonly number[],
    shape: readonly number[] = [values.length],
  ): HostTensor {
    return new HostTensor(dataType.INT64, shape, values);
  }
}

/** Whether a type is one of floating-point numbers. */
export const isFloatType = (type: number): boolean =>
  type === dataType.FLOAT ||
  type === dataType.FLOAT16 ||
  type === dataType.DOUBLE ||
  type === dataType.BFLOAT16;

/** The number of elements of a shape. */
export const countOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
