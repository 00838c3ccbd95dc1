import type { Binding, LaunchTarget } from "@halfstep/device";
import {
  attentionProbabilities,
  attentionProbabilitiesBackward,
} from "../src/attention/probabilities.js";
import { batchNormBackward } from "../src/batch-norm/backward.js";
import { batchNormNormalize } from "../src/batch-norm/normalize.js";
import { concatenate } from "../src/copies/concatenate.js";
import { permute } from "../src/copies/permute.js";
import { stridedCopy } from "../src/copies/strided-copy.js";
import { addRows } from "../src/gather-scatter/add-rows.js";
import { gather } from "../src/gather-scatter/gather.js";
import { scatter } from "../src/gather-scatter/scatter.js";
import { softmaxCrossEntropy, softmaxCrossEntropyBackward } from "../src/losses/cross-entropy.js";
import { nllLossBackward } from "../src/losses/nll.js";
import { normBackward } from "../src/norms/backward.js";
import { norm } from "../src/norms/norm.js";
import { normNormalize } from "../src/norms/normalize.js";
import { avgPool2d, avgPool2dBackward } from "../src/pool/avg-pool.js";
import { maxPool2d, maxPool2dBackward, maxPool2dSelect } from "../src/pool/max-pool.js";
import { type PoolAttributes, poolOutputSize } from "../src/pool/shape.js";
import { reduce } from "../src/reductions/reduce.js";
import { scan } from "../src/reductions/scan.js";
import { resample, resampleBackward } from "../src/resample.js";
import {
  logSoftmax,
  logSoftmaxBackward,
  type RowsAttributes,
  softmax,
  softmaxBackward,
} from "../src/softmax.js";

export type Operand = "a" | "b" | "c" | "d" | "e" | "f" | "g";

/** A launch whose result is stored by quads, so that an epilogue can be woven into its store. */
export interface Family {
  /** Elements of each operand; labels and indices are uint32. */
  readonly operands: Partial<Record<Operand | "labels", number>>;
  /** Those that are statistics: positive float32 numbers. */
  readonly statistics?: string;
  /** Elements of the result. */
  readonly length: number;
  run<B>(target: LaunchTarget<B>, o: Record<Operand | "labels", Binding<B>>, out: Binding<B>): void;
}

const batchNorm = (rows: number, channels: number): Record<string, Family> => {
  const [length, shape] = [rows * channels, { rows, channels, eps: 1e-5 }];
  const stats = { b: channels, c: channels, d: channels, e: channels };
  const of = `[${rows},${channels}]`;
  return {
    [`batchNormNormalize ${of}`]: {
      ...{ operands: { a: length, ...stats }, statistics: "bcde", length },
      run: (target, { a, b, c, d, e }, out) =>
        target.launch(
          batchNormNormalize({ input: a, mean: b, variance: c, weight: d, bias: e, out }, shape),
        ),
    },
    [`batchNormInputGradient ${of}`]: {
      ...{ operands: { a: length, ...stats, f: channels, g: length }, statistics: "bcdef", length },
      run: (target, { a, b, c, d, e, f, g }, out) =>
        batchNormBackward(
          target,
          {
            ...{ input: a, mean: b, variance: c, weight: d, outGradient: g, inputGradient: out },
            ...{ weightGradient: e, biasGradient: f },
          },
          shape,
        ),
    },
  };
};

const norms = (batch: number, pixels: number, groups: number, width: number) => {
  const [length, rows] = [batch * pixels * groups * width, batch * groups];
  const shape = { batch, pixels, groups, width };
  const stats = { a: length, b: rows, c: rows, d: groups * width };
  const of = `[${batch},${pixels},${groups},${width}]`;
  return {
    [`normNormalize ${of}`]: {
      ...{ operands: { ...stats, e: groups * width }, statistics: "bcde", length },
      run: (target, { a, b, c, d, e }, out) =>
        target.launch(
          normNormalize({ input: a, mean: b, rstd: c, weight: d, bias: e, out }, shape),
        ),
    },
    [`norm ${of}`]: {
      ...{ operands: { ...stats, e: groups * width }, statistics: "bcde", length },
      run: (target, { a, b, c, d, e }, out) =>
        norm(target, { input: a, mean: b, rstd: c, weight: d, bias: e, out }, { ...shape, eps: 1 }),
    },
    [`normInputGradient ${of}`]: {
      ...{ operands: { ...stats, g: length }, statistics: "bcd", length },
      run: (target, { a, b, c, d, g }, out) =>
        normBackward(
          target,
          { input: a, mean: b, rstd: c, weight: d, outGradient: g, inputGradient: out },
          shape,
        ),
    },
  } satisfies Record<string, Family>;
};

const pool = (attributes: PoolAttributes): Record<string, Family> => {
  const { batch, height, width, channels, window, stride } = attributes;
  const [outHeight, outWidth] = poolOutputSize(attributes);
  const [length, results] = [
    batch * height * width * channels,
    batch * outHeight * outWidth * channels,
  ];
  const of = `[${batch},${height},${width},${channels}] ${window} by ${stride}`;
  return {
    [`maxPool2d ${of}`]: {
      ...{ operands: { a: length }, length: results },
      run: (target, { a }, out) => target.launch(maxPool2d({ input: a, out }, attributes)),
    },
    [`maxPool2dBackward ${of}`]: {
      ...{ operands: { a: length, b: results }, length },
      run: (target, { a, b }, out) =>
        target.launch(
          maxPool2dBackward({ input: a, outGradient: b, inputGradient: out }, attributes),
        ),
    },
    [`maxPool2dSelect ${of}`]: {
      ...{ operands: { a: length, b: length }, length: results },
      run: (target, { a, b }, out) =>
        target.launch(maxPool2dSelect({ input: a, values: b, out }, attributes)),
    },
    [`avgPool2d ${of}`]: {
      ...{ operands: { a: length }, length: results },
      run: (target, { a }, out) => target.launch(avgPool2d({ input: a, out }, attributes)),
    },
    [`avgPool2dBackward ${of}`]: {
      ...{ operands: { a: results }, length },
      run: (target, { a }, out) =>
        target.launch(avgPool2dBackward({ outGradient: a, inputGradient: out }, attributes)),
    },
  };
};

const rowOps = (rows: number, columns: number): Record<string, Family> => {
  const [length, shape]: [number, RowsAttributes] = [rows * columns, { rows, columns }];
  const classes = { rows, classes: columns };
  const of = `[${rows},${columns}]`;
  const two = { operands: { a: length, b: length }, length };
  return {
    [`softmax ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) => target.launch(softmax({ input: a, out }, shape)),
    },
    [`softmaxBackward ${of}`]: {
      ...two,
      run: (target, { a, b }, out) =>
        target.launch(softmaxBackward({ out: a, outGradient: b, inputGradient: out }, shape)),
    },
    [`logSoftmax ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) => target.launch(logSoftmax({ input: a, out }, shape)),
    },
    [`logSoftmaxBackward ${of}`]: {
      ...two,
      run: (target, { a, b }, out) =>
        target.launch(logSoftmaxBackward({ out: a, outGradient: b, inputGradient: out }, shape)),
    },
    [`attentionProbabilities ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) =>
        target.launch(
          attentionProbabilities({ scores: a, probabilities: out }, { ...shape, scale: 0.3 }),
        ),
    },
    [`attentionProbabilitiesBackward ${of}`]: {
      ...two,
      run: (target, { a, b }, out) =>
        target.launch(
          attentionProbabilitiesBackward(
            { probabilities: a, gradient: b, scoresGradient: out },
            { ...shape, scale: 0.3 },
          ),
        ),
    },
    [`softmaxCrossEntropy ${of}`]: {
      ...{ operands: { a: length, labels: rows }, length: rows },
      run: (target, { a, labels }, out) =>
        target.launch(softmaxCrossEntropy({ logits: a, labels, losses: out }, classes)),
    },
    [`softmaxCrossEntropyBackward ${of}`]: {
      ...{ operands: { a: length, b: 1, labels: rows }, length },
      run: (target, { a, b, labels }, out) =>
        target.launch(
          softmaxCrossEntropyBackward(
            { logits: a, labels, lossGradient: b, logitsGradient: out },
            { ...classes, reduction: "mean" },
          ),
        ),
    },
    [`nllLossBackward ${of}`]: {
      ...{ operands: { a: rows, labels: rows }, length },
      run: (target, { a, labels }, out) =>
        target.launch(nllLossBackward({ labels, lossGradient: a, inputGradient: out }, classes)),
    },
    [`scan ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) =>
        scan(target, { input: a, out }, { op: "sum", ...shape, reverse: true }),
    },
    [`reduce rows of ${of}`]: {
      ...{ operands: { a: length }, length: rows },
      run: (target, { a }, out) =>
        reduce(target, { input: a, out }, { op: "mean", outer: rows, size: columns, inner: 1 }),
    },
    [`reduce columns of ${of}`]: {
      ...{ operands: { a: length }, length: columns },
      run: (target, { a }, out) =>
        reduce(target, { input: a, out }, { op: "max", outer: 1, size: rows, inner: columns }),
    },
  };
};

const moves = (inner: number): Record<string, Family> => {
  const of = `[${inner}]`;
  const sizes = { outer: 2, size: 6, inner };
  const length = 12 * inner;
  return {
    [`gather ${of}`]: {
      ...{ operands: { a: length, labels: 3 }, length: 6 * inner },
      run: (target, { a, labels }, out) =>
        target.launch(
          gather({ input: a, index: labels, out }, { ...sizes, count: 3, indexing: "rows" }),
        ),
    },
    [`scatter ${of}`]: {
      ...{ operands: { a: length, b: 6 * inner, labels: 6 * inner }, length },
      run: (target, { a, b, labels }, out) =>
        scatter(
          target,
          { base: a, index: labels, source: b, out },
          { ...sizes, count: 3, op: "add" },
        ),
    },
    [`addRows ${of}`]: {
      ...{ operands: { a: 6 * inner, labels: 3 }, length },
      run: (target, { a, labels }, out) =>
        addRows(target, { index: labels, source: a, out }, { ...sizes, count: 3 }),
    },
    [`concatenate ${of}`]: {
      ...{ operands: { a: 6 * inner, b: 4 * inner }, length: 10 * inner },
      run: (target, { a, b }, out) =>
        target.launch(concatenate({ inputs: [a, b], out }, { outer: 2, sizes: [3, 2], inner })),
    },
    [`permute ${of}`]: {
      ...{ operands: { a: 15 * inner }, length: 15 * inner },
      run: (target, { a }, out) =>
        target.launch(permute({ input: a, out }, { shape: [3, 5, inner], order: [1, 0, 2] })),
    },
    [`transposition ${of}`]: {
      ...{ operands: { a: 8 * inner }, length: 8 * inner },
      run: (target, { a }, out) =>
        target.launch(permute({ input: a, out }, { shape: [8, inner], order: [1, 0] })),
    },
    [`padding ${of}`]: {
      ...{ operands: { a: 5 * inner }, length: 7 * inner },
      run: (target, { a }, out) =>
        target.launch(
          stridedCopy(
            { input: a, out },
            {
              dimensions: [
                { size: 7, stride: inner, from: 1, to: 6 },
                { size: inner, stride: 1 },
              ],
              offset: -inner,
              fill: 0.25,
            },
          ),
        ),
    },
    [`resample ${of}`]: {
      ...{ operands: { a: length }, length: 10 * inner * 2 },
      run: (target, { a }, out) =>
        target.launch(resample({ input: a, out }, { ...sizes, mode: "linear", newSize: 10 })),
    },
    [`resampleBackward ${of}`]: {
      ...{ operands: { a: 10 * inner * 2 }, length },
      run: (target, { a }, out) =>
        target.launch(
          resampleBackward(
            { outGradient: a, inputGradient: out },
            { ...sizes, mode: "cubic", newSize: 10 },
          ),
        ),
    },
  };
};

const pairs = { window: [2, 2], stride: [2, 2], padding: [0, 0] } as const;
const threes = { window: [3, 3], stride: [2, 2], padding: [1, 1] } as const;

/** By quads and by elements, with tails behind them. */
export const families: Readonly<Record<string, Family>> = {
  ...batchNorm(150, 8),
  ...batchNorm(37, 5),
  ...norms(70, 1, 1, 12),
  ...norms(3, 9, 2, 4),
  ...norms(5, 1, 1, 7),
  ...norms(66, 1, 1, 516),
  ...norms(3, 1, 1, 72),
  ...pool({ batch: 2, height: 7, width: 5, channels: 4, ...pairs }),
  ...pool({ batch: 1, height: 5, width: 7, channels: 3, ...threes }),
  ...rowOps(9, 12),
  ...rowOps(5, 7),
  ...rowOps(3, 260),
  ...moves(4),
  ...moves(3),
};

/** With rows or channels in pairs of quads, which GPUs move where storage has 16 bits. */
export const familiesOfPairs: Readonly<Record<string, Family>> = {
  ...batchNorm(70, 8),
  ...norms(70, 1, 1, 40),
  ...norms(3, 9, 2, 8),
  ...pool({ batch: 2, height: 7, width: 5, channels: 8, ...pairs }),
  ...rowOps(9, 40),
  ...moves(8),
};

/** One element, and none. */
export const smallest: Readonly<Record<string, Family>> = {
  ...batchNorm(0, 4),
  ...norms(1, 1, 1, 1),
  ...norms(0, 1, 1, 8),
  ...pool({ batch: 1, height: 2, width: 2, channels: 1, ...pairs }),
  ...pool({ batch: 0, height: 2, width: 2, channels: 4, ...pairs }),
  ...rowOps(1, 1),
  ...moves(1),
};
