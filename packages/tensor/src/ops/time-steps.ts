import { checked } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import { anything, callback } from "../arguments/own-kinds.js";
import { mapTensors, tensorsIn } from "../arguments/tensors-in.js";
import { noGrad } from "../autograd/grad-mode.js";
import { withoutEffect } from "../autograd/recomputation.js";
import { ArgumentError, ShapeError } from "../errors.js";
import { requireSynchronous } from "../record/synchronous.js";
import type { Tensor } from "../tensor/tensor.js";
import { stack } from "./concatenate.js";
import { narrow, select } from "./windows.js";

/** A type with `Tensor` in the place of each kind of tensor, also in arrays and plain objects. */
export type WithTensors<T> = T extends Tensor
  ? Tensor
  : T extends object
    ? { [K in keyof T]: WithTensors<T[K]> }
    : T;

/** One step of {@link scan}: [the next carry, the step's result]. */
export type ScanStep<C, X, Y> = (
  carry: WithTensors<C>,
  x: WithTensors<X>,
) => readonly [carry: WithTensors<C>, y: Y];

/** Options of {@link scan}. */
export interface ScanOptions {
  /** The number of steps, where `xs` has no tensors. */
  readonly length?: number;
  /** From the last element to the first; results stay in the places of their elements. Default false. */
  readonly reverse?: boolean;
}

/** Anything; array literals of this type are tuples. */
type Tree = readonly [] | NonNullable<unknown>;

type Scan = <C extends Tree, X extends Tree | null | undefined, Y extends Tree | null | undefined>(
  step: ScanStep<C, X, Y>,
  carry: C,
  xs: X,
  options?: ScanOptions,
) => [carry: WithTensors<C>, ys: WithTensors<Y>];

/**
 * Calls `step(carry, x)` for each element of `xs` along the leading axis, and hands each carry to the next call, as `lax.scan` of JAX.
 * Returns the last carry, and the results of all steps, stacked along a new leading axis.
 *
 * Carry, elements and results are tensors, or arrays and plain objects of them. Members of `xs` and of results may be null or undefined; a
 * carry may hold anything. Without tensors in `xs`, as for generation, `length` says how many steps there are. Of no steps the carry is the
 * given one, and results are empty: their shapes are those of a call on zeros, which changes nothing else.
 *
 * `step` is called and recorded for each element: a scan of n steps has n times the launches of `step`, n for each tensor of `xs` and about
 * n / 6 for each tensor of results, and each length has a plan. Gradients of any order flow through it. `lstm` and `gru` take two
 * launches a step.
 *
 * ```ts
 * // Running means that forget, and the mean of all: x is [length, batch], and each step sees [batch].
 * const [last, all] = scan(
 *   (mean: Tensor, x: Tensor) => {
 *     const next = lerp(mean, x, 0.1);
 *     return [next, next];
 *   },
 *   runtime.zeros([batch]),
 *   x,
 * );
 * ```
 *
 * @throws ShapeError where tensors of `xs` differ in their leading axis, or results of steps in their shapes
 * @throws ArgumentError where `xs` or results hold something else than tensors, or results of steps differ in their members
 */
export const scan: Scan = checked(
  "scan",
  {
    step: callback,
    carry: anything,
    xs: kinds.optional(anything),
    options: kinds.optionals({ length: kinds.integer, reverse: kinds.flag }),
  },
  (
    step: ScanStep<unknown, unknown, unknown>,
    carry: unknown,
    xs: unknown,
    { length, reverse = false }: ScanOptions = {},
  ): [unknown, unknown] => {
    const count = lengthOf(xs, length);
    const call = (state: unknown, x: unknown): readonly [carry: unknown, y: unknown] => {
      const result: unknown = requireSynchronous("scan", step(state, x));
      if (Array.isArray(result) && result.length === 2) return result as [unknown, unknown];
      throw new ArgumentError("scan: step must return [carry, result]");
    };
    if (count === 0) return [carry, emptyResults(call, carry, xs)];
    const results: unknown[] = [];
    let state = carry;
    for (let order = 0; order < count; order++) {
      const place = reverse ? count - 1 - order : order;
      [state, results[place]] = call(
        state,
        mapTensors(xs, (x) => select(x, 0, place)),
      );
    }
    return [state, stacked(results)];
  },
) as Scan;

function lengthOf(xs: unknown, given: number | undefined): number {
  requireTensors("xs", xs);
  const tensors = tensorsIn(xs);
  const [first] = tensors;
  if (!first) {
    if (given !== undefined && given >= 0) return given;
    throw new ArgumentError(
      given === undefined
        ? "scan: xs has no tensors; say how many steps there are with { length }"
        : `scan: options.length is ${given}, but must be at least 0`,
    );
  }
  const odd = tensors.find(({ shape }) => shape[0] === undefined || shape[0] !== first.shape[0]);
  if (odd)
    throw new ShapeError(
      `scan: xs must have one length along axis 0, not those of [${first.shape}] and [${odd.shape}]`,
    );
  const size = first.shape[0] as number;
  if (given !== undefined && given !== size)
    throw new ShapeError(`scan: options.length is ${given}, but xs has ${size} elements`);
  return size;
}

/** The results of no steps: those of one on zeros, with a leading axis of 0. */
function emptyResults(
  call: (carry: unknown, x: unknown) => readonly [unknown, unknown],
  carry: unknown,
  xs: unknown,
): unknown {
  const zeros = mapTensors(xs, (x) => x.runtime.zeros(x.shape.slice(1), { dtype: x.dtype }));
  const [, y] = noGrad(() => withoutEffect(() => call(carry, zeros)));
  return mapTensors(stacked([y]), (each) => narrow(each, 0, 0, 0));
}

/** Tensors in the same places of all values, stacked. */
function stacked(values: readonly unknown[]): unknown {
  const [first] = values;
  requireTensors("a step's result", first);
  if (first === undefined || first === null) {
    if (values.some((value) => value !== first)) throw differing();
    return first;
  }
  if (isTensor(first)) {
    if (!values.every(isTensor)) throw differing();
    return stack(values as readonly Tensor[]);
  }
  const names = Object.keys(first as object).join();
  for (const value of values)
    if (
      typeof value !== "object" ||
      value === null ||
      isTensor(value) ||
      Array.isArray(value) !== Array.isArray(first) ||
      Object.keys(value).join() !== names
    )
      throw differing();
  const member = (name: string | number): unknown =>
    stacked(values.map((value) => (value as Record<string | number, unknown>)[name]));
  return Array.isArray(first)
    ? first.map((_, i) => member(i))
    : Object.fromEntries(Object.keys(first as object).map((name) => [name, member(name)]));
}

const differing = (): ArgumentError =>
  new ArgumentError("scan: all steps must return results with the same members");

/** Refuses what is neither a tensor nor null or undefined, nor an array or plain object of such. */
function requireTensors(what: string, value: unknown): void {
  if (value === undefined || value === null || isTensor(value)) return;
  if (Array.isArray(value)) for (const item of value) requireTensors(what, item);
  else if (typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype)
    for (const item of Object.values(value)) requireTensors(what, item);
  else
    throw new ArgumentError(
      `scan: ${what} must be a tensor, or an array or plain object of tensors, but has ${described(value)}`,
    );
}

const described = (value: unknown): string =>
  typeof value === "object" ? "an object of a class" : `${typeof value} ${String(value)}`;
