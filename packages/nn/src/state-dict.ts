import { isInteger } from "@halfstep/formats/dtypes";
import { type ElementsOf, noGrad, type Variable } from "@halfstep/tensor/functional";
import { requireArguments, shown } from "./arguments.js";
import { StateDictError } from "./errors.js";
import { nearestName } from "./nearest-name.js";

type DType = Variable["dtype"];

/** A parameter or buffer of a dtype as plain data. */
interface SavedAs<D extends DType> {
  readonly shape: readonly number[];
  /** How the module stores it, or what was asked for. */
  readonly dtype: D;
  /** The elements in row-major order; 16-bit ones decoded, which loses nothing. */
  readonly data: ElementsOf<D> extends Float32Array ? Float32Array | Float64Array : ElementsOf<D>;
}

/** A parameter or buffer as plain data. Where its dtype is known, so is the type of its elements. */
export type SavedTensor<D extends DType = DType> = D extends DType ? SavedAs<D> : never;

/** Parameters and buffers by dotted path. */
export type StateDict = Readonly<Record<string, SavedTensor>>;

/** What `loadStateDict()` has left as it was. */
export interface StateDictKeys {
  /** Names that the module has and the state lacks. */
  readonly missing: readonly string[];
  /** Names that the state has and the module lacks. */
  readonly unexpected: readonly string[];
  /** Names that both have, with other shapes: the head of other classes, say. */
  readonly misshapen: readonly string[];
}

type NamedVariables = Iterable<readonly [path: string, variable: Variable]>;

/** How `stateDict` returns the tensors of a module. */
export interface StateDictOptions {
  /**
   * `"float32"` for a state dict whose floating tensors are float32, whatever the module stores: what apex gives of an O2 model. The
   * numbers are the same. Default: as they are stored, as in torch.
   */
  readonly dtype?: "float32" | undefined;
}

export async function stateDictOf(
  variables: NamedVariables,
  options: StateDictOptions = {},
): Promise<StateDict> {
  requireArguments("stateDict({ dtype? })", options);
  const { dtype: asked } = options;
  if (asked !== undefined && asked !== "float32")
    throw new RangeError(
      `dtype is ${shown(asked)}: a state dict is of "float32", or as it is stored`,
    );
  const entries = [...byName(variables)].map(
    async ([path, variable]): Promise<[string, SavedTensor]> => {
      const { shape } = variable;
      const dtype = isInteger(variable.dtype) ? variable.dtype : (asked ?? variable.dtype);
      return [path, { shape, dtype, data: await variable.toArray() } as SavedTensor];
    },
  );
  return Object.fromEntries(await Promise.all(entries));
}

export function loadStateDict(
  variables: NamedVariables,
  state: StateDict,
  strict: boolean,
): StateDictKeys {
  requireState("loadStateDict(state)", state);
  const own = byName(variables);
  const missing = [...own.keys()].filter((path) => !Object.hasOwn(state, path));
  const unexpected = Object.keys(state).filter((path) => !own.has(path));
  const found = [...own].flatMap(([path, variable]) => {
    if (!Object.hasOwn(state, path)) return [];
    return [{ path, variable, saved: savedIn(state, path) }];
  });
  const misfits = found.filter(({ variable, saved }) => !fits(variable, saved));
  const misshapen = misfits.map(({ path }) => path);
  const keys = { missing, unexpected, misshapen };
  const isNothing = found.length === misfits.length && own.size > 0;
  if (strict ? missing.length + unexpected.length + misfits.length > 0 : isNothing) {
    const shapes = misfits.map(
      ({ path, variable, saved }) =>
        `${path} has shape [${saved.shape}] with ${saved.data.length} elements, the module's has [${variable.shape}]`,
    );
    const remedy = isNothing ? "" : " Pass { strict: false } to load what fits.";
    throw new StateDictError(
      `the state dict does not fit the module, and nothing was loaded: ${describeStateDictKeys({ ...keys, misshapen: shapes })}.${remedy}`,
      keys,
    );
  }
  for (const { path, variable, saved } of found)
    if (!misshapen.includes(path)) overwrite(variable, saved);
  return keys;
}

function byName(variables: NamedVariables): ReadonlyMap<string, Variable> {
  const named = new Map<string, Variable>();
  for (const [path, variable] of variables) {
    if ((named.get(path) ?? variable) !== variable)
      throw new RangeError(
        `two variables have the name ${path}: rename the field of one, which would be lost in the state dict`,
      );
    named.set(path, variable);
  }
  return named;
}

/** @throws TypeError for what callers without types pass in place of a state dict */
export function requireState(call: string, state: unknown): void {
  if (state instanceof Promise)
    throw new TypeError(`${call}: state is a Promise; await it, and pass what it resolves to`);
  if (typeof state !== "object" || state === null || Array.isArray(state))
    throw new TypeError(`${call}: state is ${shown(state)}; pass { name: { shape, dtype, data } }`);
}

/**
 * The tensor of a name that the state has.
 *
 * @throws TypeError where that is something else, such as a live tensor, data that went through JSON, or codes of narrow floats
 */
export function savedIn(state: StateDict, name: string): SavedTensor {
  const saved: unknown = state[name];
  if (typeof saved !== "object" || saved === null || "isTensor" in saved)
    throw new TypeError(
      `${name} in the state is ${shown(saved)}; pass { shape, dtype, data }, as stateDict() does`,
    );
  const { shape, data, dtype } = saved as Readonly<Record<string, unknown>>;
  if (!Array.isArray(shape))
    throw new TypeError(`${name} in the state has the shape ${shown(shape)}; pass a list of sizes`);
  if (!ArrayBuffer.isView(data) && !Array.isArray(data))
    throw new TypeError(
      `the data of ${name} in the state is ${shown(data)}; pass a typed array: JSON has none, so write [...data] there, or a safetensors file`,
    );
  if (data instanceof Uint16Array || (data instanceof Uint8Array && /^b?f/i.test(String(dtype))))
    throw new TypeError(
      `${name} in the state holds codes of ${dtype}, not numbers; decode them, as stateDictOf() of @halfstep/trainer does with what a safetensors file gives`,
    );
  return saved as SavedTensor;
}

/** Names of a kind that a message lists: a state of another model has thousands. */
const mostShown = 6;

/**
 * What {@link StateDictKeys} list, in a line for people. A missing name has the nearest unexpected one beside it.
 *
 * @example
 * describeStateDictKeys({ missing: ["fc.weight"], unexpected: ["fc1.weight"], misshapen: [] });
 * // "missing: fc.weight (nearest: fc1.weight); unexpected: fc1.weight"
 */
export function describeStateDictKeys({ missing, unexpected, misshapen }: StateDictKeys): string {
  const withNearest = missing.slice(0, mostShown).map((name) => {
    const nearest = nearestName(name, unexpected);
    return nearest === undefined ? name : `${name} (nearest: ${nearest})`;
  });
  const list = (kind: string, names: readonly string[], count: number): string[] => {
    const shown = names.slice(0, mostShown);
    const more = count > shown.length ? `, and ${count - shown.length} more` : "";
    return count === 0 ? [] : [`${kind}: ${shown.join(", ")}${more}`];
  };
  return [
    ...list("missing", withNearest, missing.length),
    ...list("unexpected", unexpected, unexpected.length),
    ...list("of another shape", misshapen, misshapen.length),
  ].join("; ");
}

const fits = (variable: Variable, { shape, data }: SavedTensor): boolean =>
  shape.join() === variable.shape.join() && data.length === variable.size;

function overwrite(variable: Variable, { data }: SavedTensor): void {
  const { runtime, shape, dtype } = variable;
  noGrad(() => {
    const values = runtime.tensor(data, shape, { dtype });
    variable.assign(values);
    values.dispose();
  });
}
