import { currentRegion } from "@halfstep/autocast";
import { matmulWithRowSums } from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import { isGradEnabled, noGrad } from "../autograd/grad-mode.js";
import { type DifferentiableOp, dependOn } from "../autograd/grad-node.js";
import { castOperand, castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { add } from "./elementwise.js";
import { matmul } from "./matmul.js";
import { sum } from "./sums.js";

/** y = x Wᵀ + b with x [..., in], W [out, in] and b [out], as torch.nn.functional.linear. */
export const linear: Composite<(x: Tensor, weight: Tensor, bias?: Tensor) => Tensor> = composite(
  {
    name: "linear",
    castPolicy: "lowerPrecision",
    parameters: { x: kinds.tensor, weight: kinds.tensor, bias: kinds.optional(kinds.tensor) },
  },
  (x: Tensor, weight: Tensor, bias?: Tensor): Tensor => {
    if (!bias) return matmul(x, weight, { transB: true });
    if (!isOneNode(x, weight, bias)) {
      const y = matmul(x, weight, { transB: true });
      return add(y, castOperand(bias, y.dtype));
    }
    const inputs = [x, weight, castOperand(bias, x.dtype)] as const;
    const y = noGrad(() => add(matmul(x, weight, { transB: true }), inputs[2]));
    if (isGradEnabled() && inputs.some(({ requiresGrad }) => requiresGrad))
      dependOn(inputs, [y], linearNode);
    return y;
  },
);

/** Whether {@link linearNode} applies: shapes and dtypes are those of torch's layer. */
const isOneNode = (x: Tensor, weight: Tensor, bias: Tensor): boolean =>
  // Where a region casts the operands of each op separately, each op has a gradient of its own.
  !currentRegion()?.enabled &&
  x.dtype === weight.dtype &&
  x.rank > 0 &&
  weight.rank === 2 &&
  bias.rank === 1 &&
  bias.size === weight.shape[0];

/** A product and the bias added to it, as one for autograd, so that one launch gives the gradients of both parameters. */
const linearNode: DifferentiableOp = {
  name: "linear",
  backward({ inputs, gradients, needs }) {
    const [x, weight] = inputs as [Tensor, Tensor];
    const [out, size] = weight.shape as [number, number];
    const count = x.shape.slice(0, -1).reduce((a, b) => a * b, 1);
    const rows = x.reshape([count, size]);
    const g = castTo(gradients[0] as Tensor, x.dtype).reshape([count, out]);
    const ofX = needs[0] ? matmul(g, weight).reshape(x.shape) : undefined;
    if (needs[1] && needs[2]) return [ofX, ...parameterGradients.applyAll([g, rows], null)];
    return [
      ofX,
      needs[1] ? matmul(g, rows, { transA: true }) : undefined,
      needs[2] ? sum(g, 0) : undefined,
    ];
  },
};

/** The gradients of weight and bias, gᵀ x [out, in] and the sum of g's rows [out], from g [rows, out] and x [rows, in]. */
const parameterGradients: Op<null> = defineOp<null>({
  name: "linearParameterGradients",
  castPolicy: "lowerPrecision",
  shape([g, x]) {
    const [gradient, rows] = [g, x] as [TensorSpec, TensorSpec];
    const [out, size] = [gradient.shape[1], rows.shape[1]] as [number, number];
    const { dtype } = gradient;
    return [
      { shape: [out, size], dtype },
      { shape: [out], dtype },
    ];
  },
  forward({ target, inputs, outputs }) {
    const [a, b] = inputs as [Operand, Operand];
    const [out, rowSums] = outputs as [Operand, Operand];
    const [k, m] = a.shape as [number, number];
    const n = b.shape[1] as number;
    matmulWithRowSums(target, { a, b, out, rowSums }, { m, n, k });
  },
  backward({ inputs, gradients: [ofWeight, ofBias], needs }) {
    const [g, x] = inputs as [Tensor, Tensor];
    const product = (): Tensor | undefined => {
      if (ofWeight && ofBias) return linear(x, ofWeight, ofBias);
      return ofWeight ? matmul(x, ofWeight, { transB: true }) : ofBias?.expand(g.shape);
    };
    return [
      needs[0] ? product() : undefined,
      needs[1] && ofWeight ? matmul(g, ofWeight) : undefined,
    ];
  },
});
