import { described } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import { ArgumentError, ShapeError } from "../errors.js";
import { isSameShape } from "../shapes.js";
import type { Tensor } from "../tensor/tensor.js";

/** What a gradient belongs to. */
interface Differentiated {
  readonly shape: readonly number[];
  readonly requiresGrad: boolean;
}

const isDifferentiated = (input: unknown): input is Tensor & Differentiated => isTensor(input);

/**
 * Checks what a backward rule returned: a list with a tensor of the input's shape, or undefined, for each input. A gradient of
 * another shape and the same size would be added in the order of memory.
 *
 * @throws ArgumentError for what is no list of tensors
 * @throws ShapeError for another number of gradients, and for one of another shape
 */
export function checkGradients(
  name: string,
  given: unknown,
  inputs: readonly unknown[],
  noun: "input" | "argument",
): void {
  if (!Array.isArray(given))
    throw new ArgumentError(
      `${name}: backward gave ${described(given)}: return a list with the gradient of each ${noun}, or undefined for those that need none`,
    );
  if (given.length !== inputs.length)
    throw new ShapeError(
      `${name}: backward gave ${counted(given.length, "gradient")} for ${counted(inputs.length, noun)}; give undefined for those that need none`,
    );
  for (let i = 0; i < inputs.length; i++) checkGradient(name, given[i], inputs[i], `${noun} ${i}`);
}

function checkGradient(name: string, gradient: unknown, input: unknown, place: string): void {
  if (gradient === undefined || gradient === null) return;
  if (!isTensor(gradient))
    throw new ArgumentError(
      `${name}: backward gave ${described(gradient)} for ${place}: return a tensor, or undefined`,
    );
  if (!isDifferentiated(input))
    throw new ArgumentError(
      `${name}: backward gave a gradient for ${place}, which is no tensor: return undefined there`,
    );
  if (input.requiresGrad && !isSameShape(gradient.shape, input.shape))
    throw new ShapeError(
      `${name}: backward gave a gradient of shape [${gradient.shape}] for ${place} of shape [${input.shape}]: both must be the same`,
    );
}

const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`;
