import type { Variable } from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import type { LoadOptions } from "./module.js";
import { Module } from "./module.js";
import {
  loadStateDict,
  requireState,
  type SavedTensor,
  type StateDict,
  type StateDictKeys,
  type StateDictOptions,
  savedIn,
  stateDictOf,
} from "./state-dict.js";

/**
 * How the counterpart of a module in torch (or in torchvision, or in Hugging Face's transformers) names and lays out its
 * variables, where that is not as here with the names in snake_case. Names in a `ModuleDict` are the same there.
 */
export interface TorchLayout {
  /** Names there of this module's fields: `{ ln1: "ln_1" }`. */
  readonly names?: Readonly<Record<string, string>>;
  /** Of which dimension here each dimension there is, by field: `{ weight: [3, 2, 0, 1] }`. */
  readonly orders?: Readonly<Record<string, readonly number[]>>;
  /** Older names that checkpoints may have for the module's own variables: `{ gamma: "weight" }`. */
  readonly aliases?: Readonly<Record<string, string>>;
  /**
   * What the counterpart has in one tensor, by its name there: the names of the parts as they would be without this, one
   * below the other: `{ in_proj_bias: ["query.bias", "key.bias", "value.bias"] }`.
   */
  readonly stacked?: Readonly<Record<string, readonly string[]>>;
  /** What the counterpart saves and this module has no use for: `["num_batches_tracked"]`. */
  readonly ignored?: readonly string[];
  /**
   * Of a whole model: the name there of its body, `base_model_prefix` of transformers. Checkpoints of a body alone load into
   * models with heads, and the other way round.
   */
  readonly base?: string;
}

/** A variable's or module's place in torch. */
interface Place {
  readonly name: string;
  readonly order: readonly number[] | undefined;
}

/**
 * Copies of all parameters and buffers with the names and dimensions that torch has for them, for `load_state_dict` there.
 * Tied parameters appear under each of their names. Waits for what has been recorded; call it outside steps.
 *
 * @throws RangeError where two variables would have one name there.
 *
 * ```ts
 * const { "layer1.0.conv1.weight": weight } = await torchStateDict(model); // [out, in, height, width]
 * ```
 */
export async function torchStateDict(
  model: Module,
  options: StateDictOptions = {},
): Promise<StateDict> {
  requireArguments("torchStateDict(model, { dtype? })", model, options);
  const places = placesIn(model);
  const state = await stateDictOf(model.namedVariables(), options);
  const named = places.map(({ path, name, order }) => {
    const saved = state[path] as SavedTensor;
    return [name, order ? permuted(saved, order) : saved] as const;
  });
  return stackedIn(model, Object.fromEntries(named));
}

/**
 * Takes over the values of a state dict of torch's, rounded to the dtypes that the module has. A tied parameter may be there
 * under one of its names. Everything is checked before anything changes.
 *
 * @returns what was left as it was, by torch's names.
 * @throws StateDictError that lists missing, unexpected and misshapen names, in torch's names; without `strict` where nothing fits.
 * RangeError where two variables would have one name there.
 */
export function loadTorchStateDict(
  model: Module,
  state: StateDict,
  options: LoadOptions = {},
): StateDictKeys {
  requireState("loadTorchStateDict(model, state)", state);
  requireArguments("loadTorchStateDict(model, state, { strict? })", model, state, options);
  const { strict = true } = options;
  const places = placesIn(model);
  const given = unstackedIn(model, withoutExtras(model, withBase(model, state, places)));
  const laidOut = Object.fromEntries(
    Object.entries(given).map(([name, saved]) => {
      const order = places.find((place) => place.name === name)?.order;
      const isTurned = order && order.length === savedIn(given, name).shape.length;
      return [name, isTurned ? permuted(saved, inverse(order)) : saved];
    }),
  );
  for (const { name, variable } of places) {
    if (Object.hasOwn(laidOut, name)) continue;
    const twin = places.find(
      (place) => place.variable === variable && Object.hasOwn(given, place.name),
    );
    if (twin) laidOut[name] = laidOut[twin.name] as SavedTensor;
  }
  const named = places.map(({ name, variable }) => [name, variable] as const);
  return loadStateDict(named, laidOut, strict);
}

/** The place of a variable in torch's state dict. */
export interface TorchPlace {
  readonly variable: Variable;
  /** Its name there. Parts that torch has in one tensor have the names that they would have alone. */
  readonly name: string;
  /** Of which dimension here each dimension there is; undefined where they are the same. */
  readonly order: readonly number[] | undefined;
}

/**
 * The places in torch's state dict of the parameters and buffers of a model, each under its first name.
 *
 * @throws RangeError where two variables would have one name there.
 */
export function torchPlaces(model: Module): readonly TorchPlace[] {
  const places = new Map<Variable, TorchPlace>();
  for (const { variable, name, order } of placesIn(model))
    if (!places.has(variable)) places.set(variable, { variable, name, order });
  return [...places.values()];
}

/** The places of a model's variables under each of their paths. */
function placesIn(model: Module): readonly (TorchPlace & { readonly path: string })[] {
  const places = [...model.namedVariables()].map(([path, variable]) => ({
    path,
    variable,
    ...placeOf(model, path),
  }));
  const named = new Map<string, (typeof places)[number]>();
  for (const place of places) {
    const other = named.get(place.name);
    if (other && other.variable !== place.variable)
      throw nameTwice(place.name, other.path, place.path);
    named.set(place.name, place);
  }
  for (const { name, parts } of stacksOf(model)) {
    const other = named.get(name);
    const part = named.get(parts.find((each) => named.has(each)) ?? name);
    if (other && part && other !== part) throw nameTwice(name, other.path, part.path);
  }
  return places;
}

const nameTwice = (name: string, first: string, second: string): RangeError =>
  new RangeError(
    `${first} and ${second} would both be ${name} in torch: rename one, or name it in torchLayout`,
  );

/** The name in torch of what is at a dotted path of the model. */
export const torchNameOf = (model: Module, path: string): string => placeOf(model, path).name;

/** Where torch has what is at a dotted path of the model. */
function placeOf(model: Module, path: string): Place {
  const names: string[] = [];
  let holder: unknown = model;
  let owner: Module = model;
  let order: readonly number[] | undefined;
  for (const field of path.split(".")) {
    names.push(owner.torchLayout.names?.[field] ?? snakeCase(field));
    order = owner.torchLayout.orders?.[field];
    holder = (holder as Record<string, unknown>)[field];
    if (holder instanceof Module) owner = holder;
  }
  return { name: names.join("."), order };
}

/** The state with the body's name put before all names, or taken away, where only this makes them fit. */
function withBase(model: Module, state: StateDict, places: readonly Place[]): StateDict {
  const { base } = model.torchLayout;
  if (base === undefined) return state;
  const prefix = `${base}.`;
  const isInside = (name: string): boolean => name.startsWith(prefix);
  const [hasHere, hasThere] = [places.map(({ name }) => name), Object.keys(state)].map((names) =>
    names.some(isInside),
  );
  if (hasHere === hasThere) return state;
  return Object.fromEntries(
    Object.entries(state).map(([name, saved]) => {
      if (!hasHere) return [isInside(name) ? name.slice(prefix.length) : name, saved];
      return [places.some((place) => place.name === name) ? name : prefix + name, saved];
    }),
  );
}

/** The state without what is ignored, and with today's names for old ones. */
function withoutExtras(model: Module, state: StateDict): StateDict {
  const ignored = new Set<string>();
  const renamed = new Map<string, string>();
  for (const [path, { torchLayout }] of model.namedModules()) {
    const at = (name: string): string => placeIn(model, path, name);
    for (const name of torchLayout.ignored ?? []) ignored.add(at(name));
    for (const [old, name] of Object.entries(torchLayout.aliases ?? {}))
      renamed.set(at(old), at(name));
  }
  return Object.fromEntries(
    Object.entries(state)
      .map(([name, saved]) => [renamed.get(name) ?? name, saved] as const)
      .filter(([name]) => !ignored.has(name)),
  );
}

/** The name in the whole model of what a module at a path names. */
const placeIn = (model: Module, path: string, name: string): string =>
  path === "" ? name : `${placeOf(model, path).name}.${name}`;

/** A tensor of torch's that is several here. */
interface Stack {
  readonly name: string;
  readonly parts: readonly string[];
}

const stacksOf = (model: Module): Stack[] =>
  [...model.namedModules()].flatMap(([path, { torchLayout }]) =>
    Object.entries(torchLayout.stacked ?? {}).map(([name, parts]) => ({
      name: placeIn(model, path, name),
      parts: parts.map((part) => placeIn(model, path, part)),
    })),
  );

/** The state with parts put one below the other, where the first of them was. */
function stackedIn(model: Module, state: StateDict): StateDict {
  const stacks = stacksOf(model);
  const entries = Object.entries(state).flatMap(([name, saved]): [string, SavedTensor][] => {
    const stack = stacks.find(({ parts }) => parts.includes(name));
    if (!stack) return [[name, saved]];
    if (stack.parts[0] !== name) return [];
    const [rows = 0, ...rest] = saved.shape;
    const data = new Float32Array(stack.parts.length * saved.data.length);
    for (const [i, part] of stack.parts.entries())
      data.set((state[part] as SavedTensor).data, i * saved.data.length);
    const shape = [stack.parts.length * rows, ...rest];
    return [[stack.name, { shape, dtype: saved.dtype, data } as SavedTensor]];
  });
  return Object.fromEntries(entries);
}

/** The state with the parts of what torch has in one tensor; what does not divide stays as it is. */
function unstackedIn(model: Module, state: StateDict): StateDict {
  const stacks = stacksOf(model);
  const entries = Object.entries(state).flatMap(([name, saved]): [string, SavedTensor][] => {
    const { parts = [] } = stacks.find((stack) => stack.name === name) ?? {};
    if (parts.length === 0) return [[name, saved]];
    const [rows = 0, ...rest] = savedIn(state, name).shape;
    if (rows % parts.length !== 0) return [[name, saved]];
    const length = saved.data.length / parts.length;
    return parts.map((part, i) => {
      const data = saved.data.slice(i * length, (i + 1) * length);
      return [part, { ...saved, shape: [rows / parts.length, ...rest], data } as SavedTensor];
    });
  });
  return Object.fromEntries(entries);
}

/** "runningMean" as "running_mean". */
const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const inverse = (order: readonly number[]): readonly number[] =>
  order.map((_, d) => order.indexOf(d));

/** The tensor with dimension `order[d]` as dimension d. */
function permuted({ shape, dtype, data }: SavedTensor, order: readonly number[]): SavedTensor {
  const strides = shape.map((_, d) => shape.slice(d + 1).reduce((a, b) => a * b, 1));
  const sizes = order.map((d) => shape[d] as number);
  const steps = order.map((d) => strides[d] as number);
  const result = data.slice();
  const last = order.length - 1;
  const [count, step] = [sizes[last] as number, steps[last] as number];
  const places = new Array<number>(last).fill(0);
  let source = 0;
  for (let at = 0; at < result.length; ) {
    for (let i = 0; i < count; i++) result[at++] = data[source + i * step] as number;
    for (let d = last - 1; d >= 0; d--) {
      source += steps[d] as number;
      places[d] = (places[d] as number) + 1;
      if ((places[d] as number) < (sizes[d] as number)) break;
      source -= (steps[d] as number) * (sizes[d] as number);
      places[d] = 0;
    }
  }
  return { shape: sizes, dtype, data: result } as SavedTensor;
}
