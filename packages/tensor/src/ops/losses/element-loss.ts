import * as kinds from "../../arguments/kinds.js";
import { castTo } from "../../dispatch/cast.js";
import { type Composite, composite } from "../../dispatch/composite.js";
import { ShapeError } from "../../errors.js";
import type { Tensor } from "../../tensor/tensor.js";
import { type ReductionOptions, reduced } from "./reduction.js";

/** A loss of each element of an input and a target of the same shape. */
export type ElementLoss<O = ReductionOptions> = Composite<
  (input: Tensor, target: Tensor, options?: O) => Tensor
>;

/** A loss that is computed and returned in float32, whatever the dtypes are, and reduced as the options say. */
export const elementLoss = <O extends ReductionOptions>(
  name: string,
  lossOf: (input: Tensor, target: Tensor, options: Partial<O>) => Tensor,
  options: kinds.ParameterKinds = {},
): ElementLoss<O> =>
  composite(
    {
      name,
      castPolicy: "float32",
      parameters: {
        input: kinds.tensor,
        target: kinds.tensor,
        options: kinds.optionals({ reduction: kinds.reduction, ...options }),
      },
    },
    (input: Tensor, target: Tensor, options?: O): Tensor => {
      requireSameShape(name, { input, target });
      const given: Partial<O> = options ?? {};
      const losses = lossOf(castTo(input, "float32"), castTo(target, "float32"), given);
      return reduced(losses, given.reduction);
    },
  );

/** Throws unless all have one shape: a broadcast would count some elements twice. */
export function requireSameShape(name: string, tensors: Readonly<Record<string, Tensor>>): void {
  const [[first, { shape }], ...others] = Object.entries(tensors) as [
    [string, Tensor],
    ...[string, Tensor][],
  ];
  for (const [other, tensor] of others)
    if (tensor.shape.join() !== shape.join())
      throw new ShapeError(
        `${name}: the ${first} has shape [${shape}], the ${other} [${tensor.shape}]; they must be equal, or a broadcast would count some elements twice`,
      );
}
