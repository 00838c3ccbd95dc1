import type { Binding, Launch } from "@halfstep/device";
import { requireLengths, requireSameKind } from "../operands.js";
import { stridedCopy } from "./strided-copy.js";

/** A shape, and the new order of its dimensions. */
export interface PermuteAttributes {
  /** Shape of the input. */
  readonly shape: readonly number[];
  /** Dimension d of the result is dimension order[d] of the input, as in torch.permute. */
  readonly order: readonly number[];
}

/**
 * out = input with its dimensions in another order.
 *
 * @throws RangeError where lengths and attributes disagree. TypeError where integers would become floats, or the other way around.
 */
export function permute<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  { shape, order }: PermuteAttributes,
): Launch<B> {
  if ([...order].sort((a, b) => a - b).some((d, i) => d !== i) || order.length !== shape.length)
    throw new RangeError(
      `permute: [${order}] does not name each of the ${shape.length} dimensions of [${shape}] once`,
    );
  const strides = shape.map((_, d) => shape.slice(d + 1).reduce((a, b) => a * b, 1));
  const count = shape.reduce((product, size) => product * size, 1);
  requireLengths("permute", operands, { input: count, out: count });
  requireSameKind("permute", [operands.input], operands.out);
  return stridedCopy(operands, {
    dimensions: order.map((d) => ({ size: shape[d] as number, stride: strides[d] as number })),
  });
}
