import type { CastPolicies, CastPolicy } from "./policy.js";

/**
 * torch's published cast policies for CUDA, as data: the default for dispatchers of your own (`torchCastPolicies[name] ??
 * "none"`), and what the ops of `@halfstep/tensor` are tested against.
 *
 * Source: aten/src/ATen/autocast_mode.h and autocast_mode.cpp of torch 2.4, with `rms_norm` of 2.13. Names are torch's in
 * camelCase (`layer_norm` → `layerNorm`, `conv_transpose2d` → `convTranspose2d`), leading underscores kept; overloads share
 * one entry. Two entries are not on torch's lists: `crossEntropy`, which torch composes of `log_softmax` and `nll_loss`, and
 * `binaryCrossEntropy`, which it bans by an error.
 *
 * Names that are missing run in the dtype of their inputs: relu, gelu, dropout, pooling, mean, batchNorm, views, and also
 * add, sub, mul, div, cat, stack and comparisons, which promote with or without autocast.
 */
export const torchCastPolicies: CastPolicies = /* @__PURE__ */ policyTable({
  lowerPrecision: `
    _convolution convolution conv1d conv2d conv3d convTbc convTranspose1d convTranspose2d convTranspose3d
    cudnnConvolution cudnnConvolutionTranspose _cudnnRnn prelu linear matmul mm mv bmm addmm addmv addr addbmm baddbmm einsum
    chainMatmul linalgMultiDot linalgVecdot lstmCell gruCell rnnTanhCell rnnReluCell _thnnFusedLstmCell _thnnFusedGruCell
    scaledDotProductAttention _scaledDotProductFlashAttention`,
  float32: `
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus
    layerNorm nativeLayerNorm groupNorm rmsNorm frobeniusNorm nuclearNorm renorm logsumexp
    cosineSimilarity dist pdist cdist
    crossEntropy nllLoss nllLoss2d poissonNllLoss klDiv l1Loss smoothL1Loss huberLoss mseLoss binaryCrossEntropyWithLogits
    cosineEmbeddingLoss hingeEmbeddingLoss marginRankingLoss multilabelMarginLoss multiMarginLoss softMarginLoss
    tripletMarginLoss
    upsampleNearest1d upsampleNearest2d upsampleNearest3d
    _upsampleNearestExact1d _upsampleNearestExact2d _upsampleNearestExact3d
    upsampleLinear1d upsampleBilinear2d _upsampleBilinear2dAa upsampleTrilinear3d upsampleBicubic2d _upsampleBicubic2dAa`,
  float32Output: `
    softmax logSoftmax sum prod cumsum cumprod norm linalgVectorNorm linalgMatrixNorm`,
  promote: `
    addcdiv addcmul atan2 bilinear cross dot vdot gridSampler indexPut tensordot scatterAdd`,
});

function policyTable(
  names: Readonly<Record<Exclude<CastPolicy, "none" | object>, string>>,
): CastPolicies {
  // Without a prototype, so that looking up "constructor" finds no policy.
  const table: Record<string, CastPolicy> = Object.assign(Object.create(null), {
    binaryCrossEntropy: {
      banned:
        "binaryCrossEntropy is unsafe under autocast: a probability that rounds to 0 or 1 has an infinite logarithm. Use binaryCrossEntropyWithLogits, or withoutAutocast() and float32 inputs",
    },
  });
  for (const [policy, list] of Object.entries(names)) {
    for (const name of list.trim().split(/\s+/)) table[name] = policy as CastPolicy;
  }
  return table;
}
