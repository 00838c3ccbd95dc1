import { type AutocastRegion, autocast, currentRegion, withoutAutocast } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { described } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import { checkGradients } from "../autograd/check-gradients.js";
import { isGradEnabled, noGrad } from "../autograd/grad-mode.js";
import { dependOn } from "../autograd/grad-node.js";
import { ArgumentError, RecordingError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { castAll } from "./cast-all.js";

/** The context that a forward pass shares with its backward pass. */
export interface FunctionContext {
  /** Saves tensors for the backward pass, which reads the versions that they have now. */
  save(...tensors: readonly Tensor[]): void;
  /** The tensors that were passed to `save`. */
  readonly saved: readonly Tensor[];
  /** Which arguments need a gradient; other gradients may be left undefined. */
  readonly needs: readonly boolean[];
  /** The autocast region of the forward pass, which {@link customBackward} opens again. */
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
  /** Computes the result, without history. Arguments that are not tensors are passed unchanged. */
  readonly forward: Forward<Arguments>;
  /** The gradient of each argument, written in ops; undefined for arguments that are not tensors or need none. */
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
    if (!isTensor(result))
      throw new ArgumentError(`${name}: forward gave ${described(result)}: return one tensor`);
    if (!(isGradEnabled() && context.needs.includes(true))) return result;
    // A result that is an argument, or is referenced elsewhere, must not gain a history.
    const output = result.detach();
    // Saved tensors count as inputs: so autograd keeps them and passes the versions that were saved.
    dependOn([...tensors, ...saved], [output], {
      name,
      backward: ({ inputs: seen, gradients: [gradient] }) => {
        saved = seen.slice(tensors.length);
        const gradients = backward(context, gradient as Tensor);
        checkGradients(name, gradients, inputs, "argument");
        const own = gradients.filter((_, i) => isTensor(inputs[i]));
        return [...own, ...saved.map(() => undefined)];
      },
    });
    return output;
  };
}

/** Options of {@link customForward}. */
export interface CustomForwardOptions {
  /** The dtype to which floating arguments are cast inside an enabled region; the forward pass then runs without autocast. */
  readonly castInputs?: DType;
}

/**
 * Wraps the forward pass of a {@link defineFunction} for autocast, as torch's `custom_fwd`. With `castInputs`, floating
 * tensors among the arguments (also in arrays and plain objects) are cast, and the pass runs without autocast. Without it,
 * autocast casts the ops of the pass one by one. Outside an enabled region it changes nothing.
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

/**
 * Wraps the backward pass of a {@link defineFunction} to run in the autocast region of its forward pass, as torch's
 * `custom_bwd`.
 */
export const customBackward =
  (backward: Backward): Backward =>
  (context, gradient) =>
    autocast(context.region ?? { enabled: false }, () => backward(context, gradient));
