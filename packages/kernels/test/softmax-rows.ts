import type { Device, DType, HalfDType } from "@halfstep/device";
import { softmaxCrossEntropy, softmaxCrossEntropyBackward } from "../src/losses/cross-entropy.js";
import { logSoftmax, logSoftmaxBackward, softmax, softmaxBackward } from "../src/softmax.js";
import { deviceMismatches, type Launches, testValues, unitRoundoff } from "./harness.js";

/** Rows of logits, of which every op over rows is computed. */
export interface RowsCase {
  readonly rows: number;
  readonly columns: number;
  readonly storage?: "float32" | HalfDType;
  readonly ignoreIndex?: number;
}

/** Inputs with their values, and results with their lengths. */
export type RowsOperands = Readonly<
  Record<
    "input" | "outGradient" | "labels" | "rowGradient",
    { readonly values: Float32Array; readonly dtype: DType }
  > &
    Record<"lossGradient", { readonly values: readonly number[] }> &
    Record<
      | "losses"
      | "softmax"
      | "softmaxGradient"
      | "logSoftmax"
      | "logSoftmaxGradient"
      | "meanGradient"
      | "noneGradient",
      { readonly values: number; readonly dtype: DType }
    >
>;

export function operandsOf({ rows, columns, storage: dtype = "float32" }: RowsCase): RowsOperands {
  const size = rows * columns;
  return {
    // Logits up to ±1024: their exponentials overflow unless the maximum is subtracted.
    input: { values: testValues(size).map((v, i) => v * (i % 3 === 0 ? 1024 : 8)), dtype },
    outGradient: { values: testValues(size, 2), dtype },
    labels: { values: testValues(rows, 3).map((v) => (v * 128 + 128) % columns), dtype: "uint32" },
    lossGradient: { values: [0.75] },
    rowGradient: { values: testValues(rows, 4), dtype: "float32" },
    softmax: { values: size, dtype },
    softmaxGradient: { values: size, dtype },
    logSoftmax: { values: size, dtype },
    logSoftmaxGradient: { values: size, dtype },
    losses: { values: rows, dtype: "float32" },
    meanGradient: { values: size, dtype },
    noneGradient: { values: size, dtype },
  };
}

export const launchesOf =
  (attributes: RowsCase): Launches<RowsOperands> =>
  (target, b) => {
    const { rows, columns: classes, ignoreIndex } = attributes;
    const { input, input: logits, outGradient, labels } = b;
    target.launch(softmax({ input, out: b.softmax }, attributes));
    target.launch(
      softmaxBackward(
        { out: b.softmax, outGradient, inputGradient: b.softmaxGradient },
        attributes,
      ),
    );
    target.launch(logSoftmax({ input, out: b.logSoftmax }, attributes));
    target.launch(
      logSoftmaxBackward(
        { out: b.logSoftmax, outGradient, inputGradient: b.logSoftmaxGradient },
        attributes,
      ),
    );
    const ignoring = { rows, classes, ...(ignoreIndex !== undefined && { ignoreIndex }) };
    target.launch(softmaxCrossEntropy({ logits, labels, losses: b.losses }, ignoring));
    target.launch(
      softmaxCrossEntropyBackward(
        { logits, labels, lossGradient: b.lossGradient, logitsGradient: b.meanGradient },
        { rows, classes, reduction: "mean" },
      ),
    );
    target.launch(
      softmaxCrossEntropyBackward(
        { logits, labels, lossGradient: b.rowGradient, logitsGradient: b.noneGradient },
        { ...ignoring, reduction: "none" },
      ),
    );
  };

export const title = ({ rows, columns, storage = "float32" }: RowsCase): string =>
  `[${rows},${columns}] ${storage}`;

export const toleranceOf = (
  { storage = "float32" }: RowsCase,
  margin: number,
): { readonly relative: number; readonly absolute: number } => ({
  relative: margin * 2 ** -23 + (storage === "float32" ? 0 : 2 * unitRoundoff[storage]),
  absolute: margin * 2 ** -23,
});

/** Where a device's results differ from those of the CPU. */
export async function rowMismatches(
  device: Device,
  attributes: RowsCase,
  operands: RowsOperands = operandsOf(attributes),
): Promise<readonly string[]> {
  const tolerance = toleranceOf(attributes, 32);
  const texts = await deviceMismatches(device, operands, launchesOf(attributes), {
    softmax: tolerance,
    softmaxGradient: tolerance,
    logSoftmax: tolerance,
    logSoftmaxGradient: tolerance,
    losses: tolerance,
    meanGradient: tolerance,
    noneGradient: tolerance,
  });
  return texts.map((text) => `${title(attributes)} ${text}`);
}
