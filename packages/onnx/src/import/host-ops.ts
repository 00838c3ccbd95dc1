import { dataType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import { storedAs } from "./host-numbers.js";
import { countOf, HostTensor } from "./host-tensor.js";

/** More numbers are not computed on the host: shapes and masks have fewer. */
const mostElements = 2 ** 24;

/** Throws where a shape, which a file may have made of anything, is none or is too large for the host. */
export function requireHostShape(shape: readonly number[], what: string): void {
  const count = countOf(shape);
  if (shape.some((size) => !Number.isInteger(size) || size < 0) || !(count <= mostElements))
    throw new OnnxError("size", `${what} would have the shape [${shape.slice(0, 8)}]`);
}

/** The shape to which shapes broadcast. */
export function broadcastShape(
  shapes: readonly (readonly number[])[],
  what: string,
): readonly number[] {
  const rank = Math.max(0, ...shapes.map(({ length }) => length));
  return Array.from({ length: rank }, (_, d) => {
    const sizes = shapes.map((shape) => shape[shape.length - rank + d] ?? 1);
    const size = sizes.find((each) => each !== 1) ?? 1;
    if (sizes.some((each) => each !== 1 && each !== size))
      throw new OnnxError(
        "malformed",
        `${what}: shapes [${shapes.join("] and [")}] do not broadcast`,
      );
    return size;
  });
}

/** How far elements of an operand of a shape are apart along each of its dimensions. */
const stridesOf = (shape: readonly number[]): readonly number[] =>
  shape.map((_, d) => countOf(shape.slice(d + 1)));

/** The place of each element of a result in an operand that broadcasts to it. */
function placesIn(shape: readonly number[], result: readonly number[]): Iterable<number> {
  const lead = result.length - shape.length;
  const own = stridesOf(shape);
  const strides = result.map((_, d) => ((shape[d - lead] ?? 1) === 1 ? 0 : own[d - lead]));
  return placesBy(strides as number[], result);
}

/** The place of each element of a result, in order, where its neighbours along each dimension are as far apart as the strides say. */
function* placesBy(strides: readonly number[], result: readonly number[]): Generator<number> {
  const at = new Array<number>(result.length).fill(0);
  let place = 0;
  for (let i = countOf(result); i > 0; i--) {
    yield place;
    for (let d = result.length - 1; d >= 0; d--) {
      place += strides[d] as number;
      at[d] = (at[d] as number) + 1;
      if ((at[d] as number) < (result[d] as number)) break;
      place -= (strides[d] as number) * (result[d] as number);
      at[d] = 0;
    }
  }
}

/** The operand's numbers in a shape that it broadcasts to. */
export function expanded(x: HostTensor, shape: readonly number[], what: string): HostTensor {
  requireHostShape(shape, what);
  const values = Array.from(placesIn(x.shape, shape), (place) => x.values[place] as number);
  return new HostTensor(x.type, shape, values);
}

/** The operand with its dimensions in another order. */
export function permuted(x: HostTensor, order: readonly number[]): HostTensor {
  const own = stridesOf(x.shape);
  const shape = order.map((d) => x.shape[d] as number);
  const places = placesBy(
    order.map((d) => own[d] as number),
    shape,
  );
  return new HostTensor(
    x.type,
    shape,
    Array.from(places, (place) => x.values[place] as number),
  );
}

type Compute = (a: number, b: number) => number;

/** Operators of two numbers, and the type of their result where it is not that of the operands. */
const binary: Readonly<Record<string, Compute>> = {
  Add: (a, b) => a + b,
  Sub: (a, b) => a - b,
  Mul: (a, b) => a * b,
  Div: (a, b) => a / b,
  Mod: (a, b) => a - b * Math.floor(a / b),
  Pow: (a, b) => a ** b,
  Max: Math.max,
  Min: Math.min,
  And: (a, b) => (a && b ? 1 : 0),
  Or: (a, b) => (a || b ? 1 : 0),
  Equal: (a, b) => (a === b ? 1 : 0),
  Less: (a, b) => (a < b ? 1 : 0),
  LessOrEqual: (a, b) => (a <= b ? 1 : 0),
  Greater: (a, b) => (a > b ? 1 : 0),
  GreaterOrEqual: (a, b) => (a >= b ? 1 : 0),
};

const tests = new Set([
  "And",
  "Or",
  "Not",
  "Equal",
  "Less",
  "LessOrEqual",
  "Greater",
  "GreaterOrEqual",
]);

const unary: Readonly<Record<string, (x: number) => number>> = {
  Neg: (x) => -x,
  Abs: Math.abs,
  Sqrt: Math.sqrt,
  Floor: Math.floor,
  Ceil: Math.ceil,
  Exp: Math.exp,
  Log: Math.log,
  Reciprocal: (x) => 1 / x,
  Not: (x) => (x ? 0 : 1),
  Sign: Math.sign,
};

/** Whether an operator that computes element by element is computed on the host where all its operands are there. */
export const isElementwiseOnHost = (operator: string): boolean =>
  Object.hasOwn(binary, operator) || Object.hasOwn(unary, operator) || operator === "Where";

/** Computes element by element. `takesDividendSign` tells the sign of Mod. */
export function elementwiseOnHost(
  operator: string,
  x: readonly HostTensor[],
  takesDividendSign: boolean,
): HostTensor {
  const shape = broadcastShape(
    x.map((each) => each.shape),
    operator,
  );
  const operands = x.map((each) => expanded(each, shape, operator).values);
  const [a = [], b = [], c = []] = operands;
  const given = (x[operator === "Where" ? 1 : 0] as HostTensor).type;
  const type = tests.has(operator) ? dataType.BOOL : given;
  const count = countOf(shape);
  const store = storedAs(type);
  const make = (of: (i: number) => number): HostTensor =>
    new HostTensor(
      type,
      shape,
      Array.from({ length: count }, (_, i) => store(of(i))),
    );
  if (operator === "Where") return make((i) => (a[i] ? b[i] : c[i]) as number);
  const ofOne = unary[operator];
  if (ofOne) return make((i) => ofOne(a[i] as number));
  const compute: Compute = takesDividendSign ? (p, q) => p % q : (binary[operator] as Compute);
  // Types of integers drop what is behind the point: of quotients, and of powers, which have the type of their base.
  if (x.length === 1) return x[0] as HostTensor;
  return make((i) =>
    operands.slice(1).reduce((sum, y) => store(compute(sum, y[i] as number)), a[i] as number),
  );
}

/** The numbers at places along an axis, as Gather takes them. */
export function gathered(x: HostTensor, index: HostTensor, axis: number): HostTensor {
  const size = x.shape[axis] as number;
  const shape = [...x.shape.slice(0, axis), ...index.shape, ...x.shape.slice(axis + 1)];
  requireHostShape(shape, "Gather");
  const inner = countOf(x.shape.slice(axis + 1));
  const outer = countOf(x.shape.slice(0, axis));
  const values: number[] = [];
  for (let o = 0; o < outer; o++)
    for (const given of index.list) {
      const place = given < 0 ? given + size : given;
      if (!(place >= 0 && place < size))
        throw new OnnxError("malformed", `Gather takes place ${given} of ${size}`);
      for (let i = 0; i < inner; i++)
        values.push(x.values[(o * size + place) * inner + i] as number);
    }
  return new HostTensor(x.type, shape, values);
}

/** Tensors one after the other along an axis. */
export function concatenated(x: readonly HostTensor[], axis: number): HostTensor {
  const [first] = x as [HostTensor];
  const sizes = x.map(({ shape }) => shape[axis] as number);
  const shape = first.shape.with(
    axis,
    sizes.reduce((a, b) => a + b, 0),
  );
  requireHostShape(shape, "Concat");
  const outer = countOf(first.shape.slice(0, axis));
  const values: number[] = [];
  for (let o = 0; o < outer; o++)
    for (const each of x) {
      const length = countOf(each.shape.slice(axis));
      for (let i = 0; i < length; i++) values.push(each.values[o * length + i] as number);
    }
  return new HostTensor(first.type, shape, values);
}

/** Every `step`-th place of an axis, from `start` on, `count` of them. */
export function picked(
  x: HostTensor,
  axis: number,
  { start, step, count }: { readonly start: number; readonly step: number; readonly count: number },
): HostTensor {
  const places = Array.from({ length: count }, (_, i) => start + i * step);
  return gathered(x, HostTensor.integers(places), axis);
}

/** Numbers above or below a diagonal, the others 0. */
export function triangle(x: HostTensor, isUpper: boolean, diagonal: number): HostTensor {
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  const values = x.list.map((value, i) => {
    const [row, column] = [Math.floor(i / columns) % rows, i % columns];
    const isKept = isUpper ? column - row >= diagonal : column - row <= diagonal;
    return isKept ? value : 0;
  });
  return new HostTensor(x.type, x.shape, values);
}
