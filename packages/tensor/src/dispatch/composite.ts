import { type CastPolicy, currentRegion, policyOf, withoutAutocast } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import { argumentCheck, declare } from "../arguments/arguments.js";
import type { ParameterKinds } from "../arguments/kinds.js";
import { tensorsIn } from "../arguments/tensors-in.js";
import type { CastDecision } from "../record/cast-decision.js";
import { currentScope, inComposite } from "../record/scope.js";
import { castOperands } from "./cast-all.js";
import { castDType } from "./dispatch.js";
import { isTracedWhole, traceAsOne } from "./trace.js";

/** The definition of a composite, for autocast. */
export interface CompositeDefinition {
  /** The name in cast policies. */
  readonly name: string;
  /** How autocast treats the floating tensors among the arguments. */
  readonly castPolicy: CastPolicy;
  /** The kinds of its arguments, by name and in order. Without it, arguments are not checked. */
  readonly parameters?: ParameterKinds;
}

/** A function that autocast treats as one op. */
export type Composite<F> = F & CompositeDefinition;

/**
 * Makes a function of tensors one op for autocast: inside a region its floating tensors are cast as the policy says, and its body then runs
 * as a whole in their dtype, without autocast. The tensors may be arguments, or lie in arrays and plain objects among them (options). Under
 * the policy "none" the body runs as if it were not wrapped. Plans, origins and explanations name the function, not its ops.
 *
 * Its derivative is that of its body. For a function with a kernel of its own use `defineOp`.
 *
 * ```ts
 * const logCosh = composite({ name: "logCosh", castPolicy: "float32" }, (x: Tensor, target: Tensor): Tensor => {
 *   const d = x.sub(target);
 *   return mean(d.exp().add(d.neg().exp()).mul(0.5).log());
 * });
 * ```
 */
export function composite<A extends readonly unknown[], R>(
  definition: CompositeDefinition,
  body: (...args: A) => R,
): Composite<(...args: A) => R> {
  const { name, castPolicy, parameters } = definition;
  const check = parameters && argumentCheck(name, parameters);
  const call = (...args: A): R => {
    check?.(args);
    const tensors = tensorsIn(args);
    const region = currentRegion();
    const policy = policyOf(definition, region);
    const dtype = castDType(definition, tensors);
    const isNoted = tensors[0]?.runtime.recording.notes !== undefined;
    // Without frames of its own, so that a short stack trace still shows the caller.
    if (!dtype && !isNoted && !isTracedWhole()) return body(...args);
    // Its ops are then cast one by one, under their own names.
    if (policy === "none" && region?.enabled) return body(...args);
    const decision: CastDecision = {
      policy,
      region,
      cast: tensors.map((x) => (dtype && isFloating(x.dtype) ? dtype : x.dtype)),
    };
    const named = isNoted
      ? (...args: A): R => inComposite(name, decision, () => body(...args))
      : body;
    let operands = tensors;
    const run = (): R => {
      if (!dtype) return named(...args);
      const cast = castOperands(args, dtype);
      operands = tensorsIn(cast);
      return withoutAutocast(() => named(...cast) as never) as R;
    };
    return traceAsOne(
      (result) => ({
        ...decision,
        op: name,
        definition,
        attributes: undefined,
        module: currentScope()?.path() ?? "",
        ownPolicy: castPolicy,
        inputs: tensors,
        operands,
        results: tensorsIn(result),
        outputs: tensorsIn(result).map((x) => x.dtype),
      }),
      run,
    );
  };
  if (parameters) declare(call, parameters);
  return Object.defineProperties(call, {
    name: { value: name },
    castPolicy: { value: castPolicy, enumerable: true },
  }) as Composite<(...args: A) => R>;
}
