import { type AutocastRegion, autocast, currentRegion, withoutAutocast } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { isTensor } from "../arguments/is-tensor.js";
import { isGradEnabled, noGrad } from "../autograd/grad-mode.js";
import { dependOn } from "../autograd/grad-node.js";
import { RecordingError, ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { castAll } from "./cast-all.js";

/** What a forward pass leaves for its backward pass. */
export interface FunctionContext {
  /** Tensors that the backward pass needs. It sees them as they were, whatever has been assigned since. */
  save(...tensors: readonly Tensor[]): void;
  /** What `save` was given. */
  readonly saved: readonly Tensor[];
  /** Which arguments need a gradient; other gradients may be left undefined. */
  readonly needs: readonly boolean[];
  /** The autocast region that the forward pass ran in: what {@link customBackward} opens again. */
  region: AutocastRegion | undefined;
}

type Forward<Arguments extends readonly unknown[]> = (
  context: FunctionContext,
  ...inputs: Arguments
) => Tensor;

type Backward = (context: FunctionContext, gradient: Tensor) => readonly (Tensor | undefined)[];

/** A function with a gradient of one's own: {@link defineFunction}. */
export interface FunctionDefinition<Arguments extends readonly unknown[]> {
  /** The name in errors. */
  readonly name: string;
  /** Computes the result, without history. Arguments that are no tensors are passed through. */
  readonly forward: Forward<Arguments>;
  /** The gradient of each argument, written in ops; undefined for those that are no tensors or need none. */
  readonly backward: Backward;
}

/**
 * A function with a gradient of one's own, built of ops: torch's `autograd.Function`. For kernels of one's own there is
 * `defineOp`.
 *
 * ```ts
 * const straightThrough = defineFunction({
 *   name: "straightThrough",
 *   forward: (_, x: Tensor) => x.sign(),
 *   backward: (_, gradient) => [gradient],
 * });
 * ```
 */
export function defineFunction<Arguments extends readonly unknown[]>(
  definition: FunctionDefinition<Arguments>,
): (...inputs: Arguments) => Tensor {
  const { name, forward, backward } = definition;
  return (...inputs) => {
    const tensors = inputs.filter((input): input is Tensor & Arguments[number] => isTensor(input));
    const [first] = tensors;
    if (!first) throw new RecordingError(`${name} needs at least one tensor`);
    let saved: readonly Tensor[] = [];
    const context: FunctionContext = {
      save: (...given) => {
        saved = given;
      },
      get saved() {
        return saved;
      },
      needs: inputs.map((input) => isTensor(input) && input.requiresGrad),
      region: currentRegion(),
    };
    const result = noGrad(() => forward(context, ...inputs));
    if (!(isGradEnabled() && context.needs.includes(true))) return result;
    // A result that is an argument, or that others hold, must not gain a history.
    const output = result.detach();
    // What is saved counts as input: so autograd keeps it, and gives the version that was saved.
    dependOn([...tensors, ...saved], [output], {
      name,
      backward: ({ inputs: seen, gradients: [gradient] }) => {
        saved = seen.slice(tensors.length);
        const gradients = backward(context, gradient as Tensor);
        if (gradients.length !== inputs.length)
          throw new ShapeError(
            `${name}: backward gave ${gradients.length} gradients for ${inputs.length} arguments; give undefined for those that need none`,
          );
        return gradients.filter((_, i) => isTensor(inputs[i]));
      },
    });
    return output;
  };
}

/** Options of {@link customForward}. */
export interface CustomForwardOptions {
  /** What floating arguments are cast to inside an enabled region, where the forward pass then runs without autocast. */
  readonly castInputs?: DType;
}

/**
 * The forward pass of a {@link defineFunction} under autocast, as torch's `custom_fwd`: with `castInputs`, floating tensors
 * among the arguments (in arrays and plain objects too) are cast and the rest of the pass is left alone; without, its ops
 * are cast as those of any other code. Outside of an enabled region it changes nothing.
 *
 * ```ts
 * forward: customForward({ castInputs: "float32" }, (context, x: Tensor) => { … }),
 * backward: customBackward((context, gradient) => […]),
 * ```
 */
export const customForward =
  <Arguments extends readonly unknown[]>(
    { castInputs }: CustomForwardOptions,
    forward: Forward<Arguments>,
  ): Forward<Arguments> =>
  (context, ...inputs) => {
    const { region } = context;
    if (!castInputs || !region?.enabled) return forward(context, ...inputs);
    context.region = { enabled: false, policies: region.policies };
    const cast = castAll(inputs, castInputs);
    return withoutAutocast(() => forward(context, ...cast));
  };

/** The backward pass of a {@link defineFunction}, run in the autocast region of its forward pass, as torch's `custom_bwd`. */
export const customBackward =
  (backward: Backward): Backward =>
  (context, gradient) =>
    autocast(context.region ?? { enabled: false }, () => backward(context, gradient));
