export { accumulate, assign } from "./assign.js";
export {
  type BatchNormOptions,
  type BatchNormResult,
  batchNorm,
  batchNormInference,
  type RunningStatistics,
  updateRunningStatistics,
} from "./batch-norm.js";
export { type Conv2dOptions, conv2d } from "./conv2d.js";
export { type CrossEntropyOptions, crossEntropy } from "./cross-entropy.js";
export { einsum } from "./einsum.js";
export {
  add,
  addScalar,
  div,
  exp,
  log,
  mul,
  reciprocal,
  relu,
  scale,
  sigmoid,
  sqrt,
  square,
  sub,
  tanh,
} from "./elementwise.js";
export { linear, type MatmulOptions, matmul } from "./matmul.js";
export { groupNorm, layerNorm, type NormOptions, type RmsNormOptions, rmsNorm } from "./norms.js";
export { avgPool2d, maxPool2d, type PoolOptions } from "./pool.js";
export {
  type AddProductOptions,
  addbmm,
  addmm,
  addmv,
  addr,
  baddbmm,
  bmm,
  chainMatmul,
  mm,
  mv,
} from "./products.js";
export { mean, sum, sumTo } from "./reduce.js";
export { expand, permute, reshape } from "./shape.js";
export { argmax, logSoftmax, type SoftmaxOptions, softmax, softmin } from "./softmax.js";
