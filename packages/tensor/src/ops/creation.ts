import type { DType } from "@halfstep/device";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, ge, keepWhere, le } from "./comparison.js";
import { axisOf } from "./windows.js";

/** Options of tensors that are made without data. */
export interface CreationOptions {
  /** Default float32. */
  readonly dtype?: DType;
}

/** Options of {@link arange}. */
export interface ArangeOptions extends CreationOptions {
  /** The first number. Default 0. */
  readonly start?: number;
  /** The distance of neighbours, which may be negative. Default 1. */
  readonly step?: number;
}

/** The numbers start, start + step, … up to `end`, without it. For indices ask for the dtype "uint32". */
export const arange: (runtime: Runtime, end: number, options?: ArangeOptions) => Tensor = checked(
  "arange",
  {
    runtime: kinds.runtime,
    end: kinds.number,
    options: kinds.optionals({ start: kinds.number, step: kinds.number, dtype: kinds.dtype }),
  },
  (
    runtime: Runtime,
    end: number,
    { start = 0, step = 1, dtype = "float32" }: ArangeOptions = {},
  ): Tensor => {
    const length = Math.ceil((end - start) / step);
    if (!(length >= 0 && Number.isFinite(length)))
      throw new ShapeError(`arange: from ${start} to ${end} there are no steps of ${step}`);
    const numbers = new Float64Array(length).map((_, i) => start + i * step);
    return runtime.tensor(numbers, [length], { dtype });
  },
);

/** `count` numbers from `start` to `end`, both among them, at equal distances. */
export const linspace: (
  runtime: Runtime,
  start: number,
  end: number,
  count: number,
  options?: CreationOptions,
) => Tensor = checked(
  "linspace",
  {
    runtime: kinds.runtime,
    start: kinds.number,
    end: kinds.number,
    count: kinds.integer,
    options: kinds.optionals({ dtype: kinds.dtype }),
  },
  (
    runtime: Runtime,
    start: number,
    end: number,
    count: number,
    { dtype = "float32" }: CreationOptions = {},
  ): Tensor => {
    if (count < 0) throw new ShapeError(`linspace: there are no ${count} numbers`);
    const step = count > 1 ? (end - start) / (count - 1) : 0;
    // From both ends, as in torch, so that the last number is `end`.
    const numbers = new Float64Array(count).map((_, i) =>
      i < count / 2 ? start + i * step : end - (count - 1 - i) * step,
    );
    return runtime.tensor(numbers, [count], { dtype });
  },
);

/** Options of {@link eye}. */
export interface EyeOptions extends CreationOptions {
  /** Default: as many as rows. */
  readonly columns?: number;
}

/** The indices of a dimension, as int32. */
const indicesOf = (runtime: Runtime, size: number, shape: readonly number[], first = 0): Tensor =>
  runtime.tensor(
    new Int32Array(size).map((_, i) => i + first),
    shape,
  );

/** A matrix of ones on the diagonal and zeros elsewhere. */
export const eye: (runtime: Runtime, rows: number, options?: EyeOptions) => Tensor = checked(
  "eye",
  {
    runtime: kinds.runtime,
    rows: kinds.integer,
    options: kinds.optionals({ columns: kinds.integer, dtype: kinds.dtype }),
  },
  (
    runtime: Runtime,
    rows: number,
    { columns = rows, dtype = "float32" }: EyeOptions = {},
  ): Tensor => {
    if (rows < 0 || columns < 0)
      throw new ShapeError(`eye: there is no matrix of ${rows} rows and ${columns} columns`);
    return eq(indicesOf(runtime, rows, [rows, 1]), indicesOf(runtime, columns, [columns])).to(
      dtype,
    );
  },
);

/** Options of {@link tril} and {@link triu}. */
export interface TriangleOptions {
  /** The diagonal that belongs to the triangle: 0 the main one, positive ones above it. Default 0. */
  readonly diagonal?: number;
}

type Triangle = (x: Tensor, options?: TriangleOptions) => Tensor;

const triangle = (name: string, isIn: typeof ge): Triangle =>
  checked(
    name,
    { x: kinds.tensor, options: kinds.optionals({ diagonal: kinds.integer }) },
    (x: Tensor, { diagonal = 0 }: TriangleOptions = {}): Tensor => {
      const [rows, columns] = [-2, -1].map((axis) => x.shape[axisOf(name, x, axis)] as number) as [
        number,
        number,
      ];
      const { runtime } = x;
      // A row of the matrix reaches up to column row + diagonal.
      const reach = indicesOf(runtime, rows, [rows, 1], diagonal);
      return keepWhere(x, isIn(reach, indicesOf(runtime, columns, [columns])));
    },
  );

/** The last two dimensions' elements on and below a diagonal; zeros above it, even where x is NaN. */
export const tril: Triangle = triangle("tril", ge);

/** The last two dimensions' elements on and above a diagonal; zeros below it, even where x is NaN. */
export const triu: Triangle = triangle("triu", le);
