import type { Binding } from "@halfstep/device";
import { philox4x32 } from "@halfstep/formats/philox";
import {
  defineHostOp,
  type HostFunction,
  type HostOp,
  hostLaunch,
} from "@halfstep/tensor/functional";
import { otherContents } from "../errors.js";
import type { StopRequest } from "../gradients/agreed-stop.js";
import type { Segment } from "../gradients/reducible.js";
import { areFinite, divide, divideAndAddTo, scaleTo, subtractTo } from "../wire/arithmetic.js";
import { Breath } from "../wire/breath.js";
import type { Range } from "../wire/chunk.js";
import type { Exchange } from "../wire/exchange.js";
import { type Matrix, orthonormalize, outer, times, transposedTimes } from "./low-rank.js";
import { type CompressionState, type MatrixState, MatrixStates, stateOf } from "./matrix-states.js";

/** Options of {@link PowerSgd}. */
export interface PowerSgdOptions {
  /** Columns of each factor: a gradient of m × n numbers travels as `rank · (m + n)`. */
  readonly rank: number;
  /** Adds what a step has left out to the gradient of the next. Default true; false is for comparisons. */
  readonly errorFeedback?: boolean | undefined;
}

/** Flat gradients to compress. */
export interface CompressedGroup<B> {
  readonly target: { launch(launch: ReturnType<typeof hostLaunch<B>>): void };
  readonly gradients: Binding<B>;
  /** The parameters with gradients in this step. */
  readonly segments: readonly Segment[];
}

/** Options of compressing the gradients of a step. */
export interface CompressOptions<B> {
  readonly weight: number | undefined;
  /** Tells which parameters have gradients. */
  readonly contents: number;
  /** `[scale, 1 / scale]` where gradients carry a loss scale. */
  readonly gradScale: Binding<B> | undefined;
  readonly stop: StopRequest;
}

/** One gradient in a step, and its range in the flat gradients. */
interface MatrixStep extends Range {
  readonly matrix: Matrix;
  /** The right factor to start from. */
  readonly right: Float32Array;
  readonly residual: Float32Array | undefined;
}

/** The flat gradients of a group in a step. */
interface GroupStep {
  readonly values: Float32Array;
  readonly scale: number;
  readonly states: ReadonlyMap<number, MatrixState>;
}

/**
 * PowerSGD (Vogels and others, 2019): gradients of matrices are averaged as products of two factors with few columns, by one step of the
 * power method from the factors of the last step. What this leaves out is added to the gradient of the next step. Other gradients, and
 * matrices of which the factors would have more numbers, are averaged as they are.
 */
export class PowerSgd {
  readonly #exchange: Exchange;
  readonly #rank: number;
  readonly #hasFeedback: boolean;
  readonly #states: MatrixStates;
  /** By number of groups, and whether there is a scale: a plan is cached by its host ops. */
  readonly #ops = new Map<string, HostOp>();

  /** @throws RangeError for a rank that is not a whole number from 1 on. */
  constructor(exchange: Exchange, { rank, errorFeedback = true }: PowerSgdOptions) {
    if (!Number.isSafeInteger(rank) || rank < 1)
      throw new RangeError(`rank is ${rank}: it must be a whole number from 1 on`);
    this.#exchange = exchange;
    this.#states = new MatrixStates(exchange);
    this.#rank = rank;
    this.#hasFeedback = errorFeedback;
  }

  /** Records that gradients are replaced by what all ranks approximate their means by. */
  record<B>(groups: readonly CompressedGroup<B>[], options: CompressOptions<B>): void {
    const { gradScale } = options;
    const bindings = groups.map(({ gradients }) => gradients);
    if (gradScale) bindings.push(gradScale);
    // In the order of recording, by which states of checkpoints are found.
    for (const { gradients } of groups) this.#states.of(gradients.buffer);
    const call = this.#functionOf(groups, options);
    const op = this.#opOf(groups.length, gradScale !== undefined);
    groups[0]?.target.launch(hostLaunch(op, bindings, call));
  }

  /** What is kept between steps. All ranks call it together, when no step is under way. */
  stateDict(): Promise<CompressionState> {
    return this.#states.save();
  }

  loadStateDict(state: CompressionState): void {
    this.#states.load(state);
  }

  #opOf(groups: number, isScaled: boolean): HostOp {
    const key = `${groups} ${isScaled}`;
    const known = this.#ops.get(key);
    if (known) return known;
    const gradients = Array.from({ length: groups }, (_, i) => ({
      ...{ name: `gradients ${i}`, access: "readwrite" as const },
      dtypes: ["float32" as const],
    }));
    const scale = { name: "scale", access: "read", dtypes: ["float32"] } as const;
    const op = defineHostOp({
      name: "exchange compressed gradients",
      bindings: isScaled ? [...gradients, scale] : gradients,
    });
    this.#ops.set(key, op);
    return op;
  }

  #functionOf<B>(
    groups: readonly CompressedGroup<B>[],
    { weight, contents, stop }: CompressOptions<B>,
  ): HostFunction {
    return async (operands) => {
      const all = operands.map((bytes) => new Float32Array(bytes.buffer, 0, bytes.length / 4));
      const values = all.slice(0, groups.length);
      const scale = all[groups.length]?.[0] ?? 1;
      const present = groups.flatMap(({ segments }, group) =>
        segments.map((segment) => {
          const { offset, length } = rangeOf(segment);
          return (values[group] as Float32Array).subarray(offset, offset + length);
        }),
      );
      const isBad = weight !== 0 && !present.every(areFinite);
      const found = Int32Array.of(isBad ? 1 : 0, stop.wanted, contents, -contents);
      const { carrier } = this.#exchange;
      await carrier.max(found, { label: "the overflow flag" });
      if (found[2] !== contents || found[3] !== -contents)
        throw otherContents(carrier, "gradients");
      stop.agreed(found[1] !== 0);
      if (found[0] !== 0) {
        // The step is skipped on all ranks, and leaves residuals and factors.
        for (const each of present) each[0] = Number.NaN;
        return;
      }
      const whole: Float32Array[] = [];
      const matrices = groups.flatMap(({ gradients, segments }, group) =>
        segments.flatMap((segment) => {
          const into = values[group] as Float32Array;
          const states = this.#states.of(gradients.buffer);
          const step = this.#matrixOf(segment, { values: into, scale, states });
          const { offset, length } = rangeOf(segment);
          if (!step) whole.push(into.subarray(offset, offset + length));
          return step ? [{ ...step, into, states }] : [];
        }),
      );
      await this.#mean(whole, "gradients that are not compressed", weight);
      const breath = new Breath();
      const lefts: Float32Array[] = [];
      for (const { matrix, right } of matrices) {
        lefts.push(times(matrix, right));
        await breath.after(matrix.values.length);
      }
      await this.#mean(lefts, "left factors of gradients", weight);
      for (const left of lefts) orthonormalize(left, this.#rank);
      const rights: Float32Array[] = [];
      for (const [i, { matrix }] of matrices.entries()) {
        rights.push(transposedTimes(matrix, lefts[i] as Float32Array));
        await breath.after(matrix.values.length);
      }
      await this.#mean(rights, "right factors of gradients", weight);
      for (const [i, step] of matrices.entries()) {
        const { into, offset, states } = step;
        const right = rights[i] as Float32Array;
        const mean = outer(lefts[i] as Float32Array, right, this.#rank);
        states.set(offset, { right, residual: this.#residualOf(step, mean, weight) });
        scaleTo(into.subarray(offset, offset + mean.length), mean, scale);
        await breath.after(mean.length);
      }
    };
  }

  /** What a step leaves out of a gradient. */
  #residualOf(
    { matrix, residual }: MatrixStep,
    mean: Float32Array,
    weight: number | undefined,
  ): Float32Array | undefined {
    if (!this.#hasFeedback) return undefined;
    // A rank without samples has sent nothing of its residual.
    if (weight === 0) return residual ?? new Float32Array(mean.length);
    const left = new Float32Array(mean.length);
    subtractTo(left, matrix.values, mean);
    return left;
  }

  /** A gradient with its residual, without the loss scale; undefined where its factors would be no smaller. */
  #matrixOf(segment: Segment, { values, scale, states }: GroupStep): MatrixStep | undefined {
    const { offset, length } = rangeOf(segment);
    const rows = segment.shape[0] ?? 1;
    const columns = length / rows;
    if ((rows + columns) * this.#rank >= length) return undefined;
    const state = stateOf(states, offset);
    const residual = this.#hasFeedback ? state.residual : undefined;
    if (residual && residual.length !== length)
      throw new RangeError(
        `the state of compressed gradients has ${residual.length} numbers for a matrix of ${length}`,
      );
    // A factor of another rank tells nothing of this one.
    const isKnown = state.right?.length === columns * this.#rank;
    const right = isKnown && state.right ? state.right : firstRight(columns * this.#rank, offset);
    const own = values.slice(offset, offset + length);
    if (residual) divideAndAddTo(own, own, scale, residual);
    else divide(own, scale);
    return { offset, length, right, residual, matrix: { rows, columns, values: own } };
  }

  /** Replaces arrays by their means, in one exchange. */
  async #mean(
    arrays: readonly Float32Array[],
    label: string,
    weight: number | undefined,
  ): Promise<void> {
    const joined = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
    if (joined.length === 0) return;
    let offset = 0;
    for (const array of arrays) {
      joined.set(array, offset);
      offset += array.length;
    }
    await this.#exchange.mean(joined, { label, weight });
    offset = 0;
    for (const array of arrays) {
      array.set(joined.subarray(offset, offset + array.length));
      offset += array.length;
    }
  }
}

const rangeOf = ({ offset, shape }: Segment): Range => ({
  offset,
  length: shape.reduce((size, extent) => size * extent, 1),
});

/** Random numbers around zero, the same on all ranks. */
const firstRight = (length: number, seed: number): Float32Array =>
  Float32Array.from(
    { length },
    (_, i) => (philox4x32([i, seed, 0, 0], [0x9e37, 0])[0] as number) / 2 ** 31 - 1,
  );
