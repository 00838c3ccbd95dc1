import { isFloating } from "@halfstep/formats/dtypes";
import { castTo, type Tensor } from "@halfstep/tensor";
import { nameOfType } from "../data-type.js";
import { OnnxError } from "../errors.js";
import { isFloatType } from "./host-tensor.js";
import { integerDType } from "./integers.js";
import type { GraphInput } from "./read-graph.js";

/**
 * The tensors that a caller gives, by the names of the graph's inputs. Integers get the dtype of their type in the graph: differences of int64
 * are negative, those of uint32 begin anew at 2^32.
 *
 * @throws OnnxError where one is missing, unknown, or of another shape or type
 */
export function givenInputs(
  wanted: readonly GraphInput[],
  given: Readonly<Record<string, Tensor>>,
): readonly (readonly [string, Tensor])[] {
  const names = wanted.map(({ name }) => name);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw refused(`the graph has no input "${unknown}": its inputs are ${names.join(", ")}`);
  return wanted.map((input) => {
    const { name } = input;
    const tensor = Object.hasOwn(given, name) ? given[name] : undefined;
    if (!tensor) throw refused(`the graph needs "${name}": its inputs are ${names.join(", ")}`);
    return [name, asInGraph(input, tensor)];
  });
}

function asInGraph({ name, type, shape }: GraphInput, tensor: Tensor): Tensor {
  if (shape && !fits(shape, tensor.shape))
    throw refused(`"${name}" is [${shape}] in the graph, not [${tensor.shape}]`);
  if (isFloatType(type) !== isFloating(tensor.dtype))
    throw refused(`"${name}" is ${nameOfType(type)} in the graph, not ${tensor.dtype}`);
  return isFloatType(type) ? tensor : castTo(tensor, integerDType(type));
}

/** Whether a shape has the sizes of the graph, of which those with a name are free. */
const fits = (wanted: readonly (number | string)[], shape: readonly number[]): boolean =>
  wanted.length === shape.length &&
  wanted.every((size, d) => typeof size === "string" || size === shape[d]);

const refused = (message: string): OnnxError => new OnnxError("inputs", message);
