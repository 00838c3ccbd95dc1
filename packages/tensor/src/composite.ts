import { type CastPolicy, currentRegion, policyOf, withoutAutocast } from "@halfstep/autocast";
import { castTo, isFloating } from "./cast.js";
import { castDType } from "./dispatch.js";
import { Tensor } from "./tensor.js";
import { traceAsOne } from "./trace.js";

/** What autocast knows of a function that is composed of ops. */
export interface CompositeDefinition {
  /** The name in cast policies. */
  readonly name: string;
  /** How autocast treats the floating tensors among the arguments. */
  readonly castPolicy: CastPolicy;
}

/** A function that autocast treats as one op. */
export type Composite<F> = F & CompositeDefinition;

/**
 * Makes a function of tensors one op for autocast: inside a region its floating tensors are cast as the policy says, and its
 * body then runs as a whole in their dtype, without autocast. Tensors are looked for among the arguments and in the fields of
 * plain objects there (options). Under the policy "none", and outside of regions, the body runs as if it were not wrapped.
 *
 * Its derivative is that of its body. What a kernel of its own should compute is an op: `defineOp`.
 *
 * ```ts
 * const logCosh = composite({ name: "logCosh", castPolicy: "float32" }, (x: Tensor, target: Tensor): Tensor => {
 *   const d = x.sub(target);
 *   return d.exp().add(d.neg().exp()).mul(0.5).log().mean();
 * });
 * ```
 */
export function composite<A extends readonly unknown[], R>(
  { name, castPolicy }: CompositeDefinition,
  body: (...args: A) => R,
): Composite<(...args: A) => R> {
  const call = (...args: A): R => {
    const tensors = args.flatMap(tensorsOf);
    const region = currentRegion();
    const policy = policyOf({ name, castPolicy }, region);
    const dtype = castDType({ name, castPolicy }, tensors);
    const cast = (x: Tensor): Tensor => (dtype && isFloating(x.dtype) ? castTo(x, dtype) : x);
    const run = (): R => {
      if (!dtype) return body(...args);
      const given = args.map((arg) => mapTensors(arg, cast)) as unknown as A;
      return withoutAutocast(() => body(...given) as never) as R;
    };
    if (policy === "none") return run();
    return traceAsOne(
      (result) => ({
        op: name,
        policy,
        ownPolicy: castPolicy,
        region,
        inputs: tensors,
        cast: tensors.map((x) => (dtype && isFloating(x.dtype) ? dtype : x.dtype)),
        outputs: result instanceof Tensor ? [result.dtype] : [],
      }),
      run,
    );
  };
  return Object.defineProperties(call, {
    name: { value: name },
    castPolicy: { value: castPolicy, enumerable: true },
  }) as Composite<(...args: A) => R>;
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" &&
  value !== null &&
  [Object.prototype, null].includes(Object.getPrototypeOf(value));

function tensorsOf(arg: unknown): readonly Tensor[] {
  if (arg instanceof Tensor) return [arg];
  const members = Array.isArray(arg) ? arg : isPlain(arg) ? Object.values(arg) : [];
  return members.filter((value) => value instanceof Tensor);
}

function mapTensors(arg: unknown, change: (x: Tensor) => Tensor): unknown {
  const each = (value: unknown): unknown => (value instanceof Tensor ? change(value) : value);
  if (Array.isArray(arg)) return arg.map(each);
  if (!isPlain(arg)) return each(arg);
  return Object.fromEntries(Object.entries(arg).map(([name, value]) => [name, each(value)]));
}
