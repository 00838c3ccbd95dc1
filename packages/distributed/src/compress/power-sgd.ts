import type { Binding } from "@halfstep/device";
import { philox4x32 } from "@halfstep/formats/philox";
import {
  defineHostOp,
  type HostFunction,
  type HostOp,
  hostLaunch,
} from "@halfstep/tensor/functional";
import type { Range } from "../wire/chunk.js";
import type { Exchange } from "../wire/exchange.js";
import { type Matrix, orthonormalize, outer, times, transposedTimes } from "./low-rank.js";

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
  readonly segments: readonly { readonly offset: number; readonly shape: readonly number[] }[];
}

/** Options of compressing the gradients of a step. */
export interface CompressOptions<B> {
  readonly weight: number | undefined;
  /** `[scale, 1 / scale]` where gradients carry a loss scale. */
  readonly gradScale: Binding<B> | undefined;
}

/** The state of one matrix between steps. */
interface MatrixState {
  /** The mean of the right factor in the last step, from which the next one starts. */
  readonly right: Float32Array;
  /** What this rank's gradients had besides what was exchanged, without the loss scale; empty without error feedback. */
  readonly residual: Float32Array;
}

/** One gradient in a step, and its range in the flat gradients. */
interface MatrixStep extends Range {
  readonly key: string;
  readonly matrix: Matrix;
  readonly state: MatrixState;
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
  /** By group and offset. */
  readonly #states = new Map<string, MatrixState>();
  /** By number of groups, and whether there is a scale: a plan is cached by its host ops. */
  readonly #ops = new Map<string, HostOp>();

  /** @throws RangeError for a rank that is not a whole number from 1 on. */
  constructor(exchange: Exchange, { rank, errorFeedback = true }: PowerSgdOptions) {
    if (!Number.isSafeInteger(rank) || rank < 1)
      throw new RangeError(`rank is ${rank}: it must be a whole number from 1 on`);
    this.#exchange = exchange;
    this.#rank = rank;
    this.#hasFeedback = errorFeedback;
  }

  /** Records that gradients are replaced by what all ranks approximate their means by. */
  record<B>(groups: readonly CompressedGroup<B>[], options: CompressOptions<B>): void {
    const { gradScale, weight } = options;
    const bindings = groups.map(({ gradients }) => gradients);
    if (gradScale) bindings.push(gradScale);
    const call = this.#functionOf(groups, weight);
    const op = this.#opOf(groups.length, gradScale !== undefined);
    groups[0]?.target.launch(hostLaunch(op, bindings, call));
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

  #functionOf<B>(groups: readonly CompressedGroup<B>[], weight: number | undefined): HostFunction {
    return async (operands) => {
      const all = operands.map((bytes) => new Float32Array(bytes.buffer, 0, bytes.length / 4));
      const values = all.slice(0, groups.length);
      const scale = all[groups.length]?.[0] ?? 1;
      const gradients = groups.flatMap(({ segments }, group) =>
        segments.map((segment) => {
          const { offset, length } = rangeOf(segment);
          return (values[group] as Float32Array).subarray(offset, offset + length);
        }),
      );
      const found = Int32Array.of(gradients.every((each) => each.every(Number.isFinite)) ? 0 : 1);
      await this.#exchange.carrier.max(found, { label: "the overflow flag" });
      if (found[0] !== 0) {
        // The step is skipped on all ranks, and leaves residuals and factors.
        for (const each of gradients) each[0] = Number.NaN;
        return;
      }
      const whole: Float32Array[] = [];
      const matrices = groups.flatMap(({ segments }, group) =>
        segments.flatMap((segment) => {
          const step = this.#matrixOf(group, segment, values[group] as Float32Array, scale);
          const { offset, length } = rangeOf(segment);
          if (!step) whole.push((values[group] as Float32Array).subarray(offset, offset + length));
          return step ? [{ ...step, into: values[group] as Float32Array }] : [];
        }),
      );
      await this.#mean(whole, "gradients that are not compressed", weight);
      const lefts = matrices.map(({ matrix, state }) => times(matrix, state.right));
      await this.#mean(lefts, "left factors of gradients", weight);
      for (const left of lefts) orthonormalize(left, this.#rank);
      const rights = matrices.map(({ matrix }, i) =>
        transposedTimes(matrix, lefts[i] as Float32Array),
      );
      await this.#mean(rights, "right factors of gradients", weight);
      for (const [i, { key, matrix, into, offset, state }] of matrices.entries()) {
        const right = rights[i] as Float32Array;
        const mean = outer(lefts[i] as Float32Array, right, this.#rank);
        // A rank without samples has sent nothing of its residual.
        const residual =
          !this.#hasFeedback || weight === 0
            ? state.residual
            : matrix.values.map((value, at) => value - (mean[at] as number));
        this.#states.set(key, { right, residual });
        for (const [at, value] of mean.entries()) into[offset + at] = value * scale;
      }
    };
  }

  /** A gradient with its residual, without the loss scale; undefined where its factors would be no smaller. */
  #matrixOf(
    group: number,
    segment: { readonly offset: number; readonly shape: readonly number[] },
    values: Float32Array,
    scale: number,
  ): MatrixStep | undefined {
    const { offset, length } = rangeOf(segment);
    const rows = segment.shape[0] ?? 1;
    const columns = length / rows;
    if ((rows + columns) * this.#rank >= length) return undefined;
    const key = `${group} ${offset}`;
    const state = this.#states.get(key) ?? {
      right: firstRight(columns * this.#rank, offset),
      residual: new Float32Array(this.#hasFeedback ? length : 0),
    };
    const { residual } = state;
    const own = values
      .subarray(offset, offset + length)
      .map((value, i) => value / scale + (residual[i] ?? 0));
    return { key, offset, length, state, matrix: { rows, columns, values: own } };
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

const rangeOf = ({
  offset,
  shape,
}: {
  readonly offset: number;
  readonly shape: readonly number[];
}): Range => ({ offset, length: shape.reduce((size, extent) => size * extent, 1) });

/** Random numbers around zero, the same on all ranks. */
const firstRight = (length: number, seed: number): Float32Array =>
  Float32Array.from(
    { length },
    (_, i) => (philox4x32([i, seed, 0, 0], [0x9e37, 0])[0] as number) / 2 ** 31 - 1,
  );
