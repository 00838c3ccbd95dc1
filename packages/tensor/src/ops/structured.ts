import { castOp } from "../dispatch/cast.js";
import type { TracedDefinition } from "../dispatch/trace.js";
import { attentionOp } from "./attention.js";
import { probabilitiesOp } from "./attention-probabilities.js";
import { normalizeBy } from "./batch-norm.js";
import { convolve, inputGradient } from "./conv2d.js";
import { gatherOp, selectOp } from "./indexing.js";
import { matmul } from "./matmul.js";
import { layerNormOp, rmsNormOp } from "./norms.js";
import { avgPool2d, maxPool2d } from "./pool.js";
import { gruLayer, lstmLayer } from "./recurrent.js";
import { maxOp, minOp } from "./reduce.js";
import { expand, permute, reshapeNode } from "./shape.js";
import { logSoftmaxOp, softmaxOp } from "./softmax.js";
import { meanOp, sumOp } from "./sums.js";
import { resample } from "./upsample.js";
import { catOp, window } from "./windows.js";

/** The names of {@link structuredOps}. */
type StructuredOp =
  | "cast"
  | "reshape"
  | "permute"
  | "expand"
  | "window"
  | "cat"
  | "indexSelect"
  | "gather"
  | "matmul"
  | "conv2d"
  | "convTranspose2d"
  | "maxPool2d"
  | "avgPool2d"
  | "batchNorm"
  | "layerNorm"
  | "rmsNorm"
  | "softmax"
  | "logSoftmax"
  | "sum"
  | "mean"
  | "amax"
  | "amin"
  | "attention"
  | "attentionProbabilities"
  | "resample"
  | "lstm"
  | "gru";

/**
 * The definitions of ops of forward passes that are not pointwise, by which traces identify them. Tools that translate a trace compute the
 * same from the attributes.
 */
export const structuredOps: Readonly<Record<StructuredOp, TracedDefinition>> = {
  /** Attributes: the dtype of the result. */
  cast: castOp,
  /** Attributes: the shape of the result. */
  reshape: reshapeNode,
  permute: permute.definition,
  expand: expand.definition,
  window: window.definition,
  cat: catOp.definition,
  indexSelect: selectOp.definition,
  gather: gatherOp.definition,
  matmul: matmul.definition,
  conv2d: convolve.definition,
  /** The gradient of a convolution by its input, of which the result has the size. */
  convTranspose2d: inputGradient.definition,
  maxPool2d: maxPool2d.definition,
  avgPool2d: avgPool2d.definition,
  batchNorm: normalizeBy.definition,
  layerNorm: layerNormOp.definition,
  rmsNorm: rmsNormOp.definition,
  softmax: softmaxOp.definition,
  logSoftmax: logSoftmaxOp.definition,
  sum: sumOp.definition,
  mean: meanOp.definition,
  amax: maxOp.definition,
  amin: minOp.definition,
  attention: attentionOp.definition,
  attentionProbabilities: probabilitiesOp.definition,
  resample: resample.definition,
  lstm: lstmLayer,
  gru: gruLayer,
};
