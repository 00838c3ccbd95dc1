import type { AutocastDType, CastDType, CastPolicies } from "./policy.js";

/** A region in which ops are lowered to a dtype, or, disabled, in which they are not. */
export type AutocastRegion = EnabledRegion | DisabledRegion;

/** A region in which ops are cast as their policies say. */
export interface EnabledRegion {
  readonly enabled: true;
  readonly dtype: AutocastDType;
  /** Overrides by op name, those of enclosing regions included; inner ones win. `"*"` is every op that is not named. */
  readonly policies: CastPolicies;
}

/** A region in which ops run in the dtypes of their operands. */
export interface DisabledRegion {
  readonly enabled: false;
  readonly policies: CastPolicies;
}

/** The options of a region. The dtype may be missing only where nothing is cast. */
export type AutocastOptions =
  | {
      readonly dtype: AutocastDType;
      /** Default true. False turns off an enclosing region. */
      readonly enabled?: boolean;
      /**
       * Policies that replace those the ops of these names were defined with. `"*"` stands for all ops that are not named
       * here, those that enclosing regions name included.
       */
      readonly policies?: CastPolicies;
    }
  | { readonly dtype?: CastDType; readonly enabled: false; readonly policies?: CastPolicies };

/** What has not run when its function returns. */
type Deferred = PromiseLike<unknown> | Generator | AsyncGenerator;

/**
 * `never` where a result may be deferred. For a type parameter that is not known yet, the compiler asks about `any`, which gives true:
 * functions that are generic in their callback's result compile. Without the brackets it would ask no further.
 */
type Immediate<T> = [0] extends [1 & T]
  ? true
  : [Extract<T, Deferred>] extends [never]
    ? true
    : never;

/**
 * `unknown` for a synchronous result, and for a type parameter; for a promise or a generator a type that neither has, and whose member says
 * what is wrong.
 */
export type Synchronous<T, Reason extends string = "an autocast callback must be synchronous"> = [
  Immediate<T>,
] extends [never]
  ? { readonly error: Reason }
  : unknown;

/** Makes a function, or as a decorator a method, run inside a region of its own at every call. */
export type AutocastDecorator = <This, Arguments extends unknown[], Result>(
  fn: (this: This, ...inputs: Arguments) => Result & Synchronous<Result>,
  context?: ClassMethodDecoratorContext,
) => (this: This, ...inputs: Arguments) => Result;

/**
 * Calls `fn` inside a region and returns what it returns. Regions nest: the innermost decides, except that policy overrides
 * add up. The region ends when `fn` returns or throws.
 *
 * Without `fn`, gives a decorator: of methods, and as a plain function of functions.
 *
 * ```ts
 * const loss = autocast({ dtype: "float16" }, () => crossEntropy(model.forward(x), labels));
 *
 * const forward = autocast({ dtype: "float16" })((x: Tensor) => model.forward(x));
 *
 * class Head extends Module {
 *   @autocast({ dtype: "bfloat16" })
 *   forward(x: Tensor) { … }
 * }
 * ```
 *
 * @throws TypeError if `fn` returns a promise (ops after its first `await` would run outside the region) or a generator (all of its
 *   ops would), or if the dtype is neither float16 nor bfloat16, for an unknown option, or an `enabled` that is no boolean.
 */
export function autocast<T>(options: AutocastOptions, fn: () => T & Synchronous<T>): T;
export function autocast(options: AutocastOptions): AutocastDecorator;
export function autocast<T>(
  options: AutocastOptions,
  fn?: () => T & Synchronous<T>,
): T | AutocastDecorator {
  return fn ? inRegion<T>(options, fn) : decorator(options);
}

/** `autocast({ enabled: false }, fn)`: `fn` runs in the dtypes of its tensors, as backward passes do. */
export function withoutAutocast<T>(fn: () => T & Synchronous<T>): T {
  return autocast({ enabled: false }, fn);
}

/** The innermost region around the caller, enabled or not; `undefined` outside of all. */
export function currentRegion(): AutocastRegion | undefined {
  return regionStack().at(-1);
}

function inRegion<T>(options: AutocastOptions, fn: () => T): T {
  const regions = regionStack();
  regions.push(openRegion(options, regions.at(-1)));
  const depth = regions.length;
  try {
    return requireSynchronous<T>(fn());
  } finally {
    regions.length = depth - 1;
  }
}

function decorator(options: AutocastOptions): AutocastDecorator {
  requireOptions(options);
  return (fn) =>
    function (...inputs) {
      return inRegion(options, () => fn.apply(this, inputs));
    };
}

const stackKey = Symbol.for("@halfstep/autocast");

let stack: AutocastRegion[] | undefined;

/** One stack for all copies of this package in a program, so that ops of one copy use regions of another. */
function regionStack(): AutocastRegion[] {
  stack ??= sharedStack();
  return stack;
}

function sharedStack(): AutocastRegion[] {
  const shared = globalThis as { [stackKey]?: AutocastRegion[] };
  shared[stackKey] ??= [];
  return shared[stackKey];
}

/** The policies of regions without overrides, which are most: ops recognise the object and look nothing up. */
export const noPolicies: CastPolicies = Object.freeze({});

function openRegion(options: AutocastOptions, outer: AutocastRegion | undefined): AutocastRegion {
  requireOptions(options);
  const inherited = options.policies && "*" in options.policies ? undefined : outer?.policies;
  const policies = options.policies
    ? { ...inherited, ...options.policies }
    : (inherited ?? noPolicies);
  return options.enabled === false
    ? { enabled: false, policies }
    : { enabled: true, dtype: options.dtype, policies };
}

const names = ["dtype", "enabled", "policies"];

/** Refuses unknown options, too: with a misspelt `enabled: false` ops would be lowered. */
function requireOptions(options: AutocastOptions): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(
      `autocast takes options first, not ${typeof options === "function" ? "a function" : String(options)}: pass { dtype: "float16" }`,
    );
  for (const name in options)
    if (!names.includes(name))
      throw new TypeError(`autocast has no option ${name}: it has ${names.join(", ")}`);
  const { enabled, dtype } = options;
  if (enabled !== undefined && typeof enabled !== "boolean")
    throw new TypeError(
      `enabled of autocast is ${JSON.stringify(enabled)}: it must be true or false`,
    );
  if (enabled === false || dtype === "float16" || dtype === "bfloat16") return;
  throw new TypeError(
    `autocast ${dtype === undefined ? "has no dtype" : `cannot lower ops to ${String(dtype)}`}: use float16 or bfloat16, or { enabled: false } for float32`,
  );
}

function requireSynchronous<T>(result: T): T {
  if (!isDeferred(result)) return result;
  // The callback is refused as a whole: its promise must not also surface as an unhandled rejection.
  if (result instanceof Promise) result.catch(() => {});
  throw new TypeError(
    "the autocast callback returned a promise or generator, but the region has ended: await outside of it",
  );
}

/** A promise, or the object of a generator, whose body runs later. Proxies may throw where a member is read that they do not have. */
const isDeferred = (value: unknown): boolean => {
  const object = Object(value) as object;
  return "then" in object
    ? typeof object.then === "function"
    : "next" in object && "throw" in object;
};
