import { quote, TorchFileError } from "./error.js";
import { isCallOf, PickleGlobal, PickleObject, type PickleValue } from "./pickle/values.js";
import { type TensorRecord, tensorRecordOf } from "./tensor-record.js";

/** The tensors of a checkpoint by name. */
export interface FoundTensors {
  readonly tensors: ReadonlyMap<string, TensorRecord>;
  /** Keys of the dicts around them, from the outside: ["state_dict"]. */
  readonly path: readonly string[];
  /** What stood before all names and was taken away: "module." */
  readonly prefix: string;
  /** Dotted keys, beside that path and within the dict, of further values that have tensors. */
  readonly skipped: readonly string[];
}

/** Where training programs put the state dict of the model, the likelier ones first. */
const wrappers: readonly string[] = [
  ..."state_dict model_state_dict model_state model net network module params weights".split(" "),
];

/** What DataParallel and torch.compile put before all names. */
const prefixes: readonly string[] = ["module.", "_orig_mod."];

/** Dicts within dicts that are looked into for the model … */
const deepest = 4;
/** … and dicts and lists for what is left out. */
const deepestSkipped = 12;

type Dict = ReadonlyMap<PickleValue, PickleValue>;

/**
 * Finds the state dict of the model in what a checkpoint holds. It is the dict itself, the one under `state_dict`, `model` or a similar
 * key, or the only one that has tensors. A module that was saved whole has its parameters and buffers.
 * @param key dotted path of dicts instead; "" for the outermost
 * @throws TorchFileError where there is none, or are several
 */
export function findTensors(
  value: PickleValue,
  { source, key }: { readonly source: string | undefined; readonly key: string | undefined },
): FoundTensors {
  const [holder, path] =
    key === undefined
      ? new Chooser(source).choose(value, [])
      : [at(value, key, source), keysIn(key)];
  const tensors = tensorsIn(holder, source);
  if (tensors.size === 0)
    throw new TorchFileError("state-dict", nothingIn(holder, path), { source });
  const prefix = commonPrefix([...tensors.keys()]);
  const named = [...tensors].map(([name, record]) => [name.slice(prefix.length), record] as const);
  return { tensors: new Map(named), path, prefix, skipped: skippedBy(path, value) };
}

const keysIn = (key: string): readonly string[] => (key === "" ? [] : key.split("."));

/** What has tensors, and is neither on the path nor a tensor by name at its end. */
function skippedBy(path: readonly string[], value: PickleValue): readonly string[] {
  const search = new TensorSearch(deepestSkipped, { intoLists: true });
  const skipped: string[] = [];
  let inner: PickleValue | undefined = value;
  for (let depth = 0; depth <= path.length; depth++) {
    const dict: Dict | undefined = dictOf(inner);
    const isEnd = depth === path.length;
    for (const [key, entry] of dict ?? [])
      if (
        (isEnd || nameOf(key) !== path[depth]) &&
        (search.has(entry) || ((!isEnd || typeof key !== "string") && isTensor(entry)))
      )
        skipped.push([...path.slice(0, depth), nameOf(key)].join("."));
    inner = isEnd ? undefined : entryOf(dict, path[depth] as string);
  }
  return skipped;
}

/** What all names start with that is in {@link prefixes}, one or a few of them in turn. */
function commonPrefix(names: readonly string[]): string {
  let prefix = "";
  for (let i = 0; i < prefixes.length; i++)
    prefix += prefixes.find((each) => names.every((name) => name.startsWith(prefix + each))) ?? "";
  return prefix;
}

/** Looks for tensors in dicts and modules, and in lists if that is asked for. */
class TensorSearch {
  /** By depth, what is known of dicts: a pickle may refer to one dict from a thousand others. */
  readonly #known: readonly Map<PickleValue, boolean>[];
  readonly #intoLists: boolean;

  constructor(depth: number, { intoLists }: { readonly intoLists: boolean }) {
    this.#known = Array.from({ length: depth + 1 }, () => new Map());
    this.#intoLists = intoLists;
  }

  /** Whether a module, or what holds others to that depth, has a tensor. */
  has(value: PickleValue, depth: number = this.#known.length - 1): boolean {
    if (moduleStateOf(value)) return true;
    const entries = dictOf(value)?.values() ?? (this.#intoLists && Array.isArray(value) && value);
    if (!entries || depth === 0) return false;
    const known = this.#known[depth] as Map<PickleValue, boolean>;
    const answer = known.get(value);
    if (answer !== undefined) return answer;
    const inner = [...(entries as Iterable<PickleValue>)];
    const found = inner.some(isTensor) || inner.some((each) => this.has(each, depth - 1));
    known.set(value, found);
    return found;
  }
}

/** Keys of what is no model: optimizers and the like, and what modules of torch keep beside their tensors. */
const noModel = /optim|sched|scaler|_extra_state$/i;

/** Chooses the dict that has the model's tensors. */
class Chooser {
  readonly #source: string | undefined;
  readonly #search = new TensorSearch(deepest, { intoLists: false });

  constructor(source: string | undefined) {
    this.#source = source;
  }

  /** The dict or module that has the model's tensors, and the keys that lead there. */
  choose(
    value: PickleValue,
    path: readonly string[],
  ): readonly [holder: PickleValue, path: readonly string[]] {
    const dict = dictOf(value);
    const depth = deepest - path.length;
    if (dict === undefined || depth === 0) return [value, path];
    const nested = new Map(
      [...dict].filter(
        (entry): entry is [string, PickleValue] =>
          typeof entry[0] === "string" && this.#search.has(entry[1], depth),
      ),
    );
    const into = (key: string) => this.choose(nested.get(key) ?? null, [...path, key]);
    const wrapper = wrappers.find((key) => nested.has(key));
    if (wrapper !== undefined) return into(wrapper);
    const own = [...dict].filter(([, entry]) => isTensor(entry)).map(([key]) => nameOf(key));
    const models = [...nested.keys()].filter((key) => !noModel.test(key));
    if (models.length === 0) return [value, path];
    if (models.length === 1 && own.length === 0) return into(models[0] as string);
    const full = (key: string): string => quote([...path, key].join("."));
    const under = listed(models.map(full));
    throw new TorchFileError(
      "state-dict",
      own.length === 0
        ? `has tensors under ${under}: choose one by the option key`
        : `has tensors of its own, ${listed(own.map(quote))}, and under ${under}: choose by the option key, which is ${quote(path.join("."))} for its own`,
      { source: this.#source },
    );
  }
}

const listed = (names: readonly string[]): string =>
  names.slice(0, 8).join(", ") + (names.length > 8 ? ", …" : "");

/** A key of a dict for people: of what is neither text nor a number, only its kind. */
const nameOf = (key: PickleValue): string =>
  typeof key === "string" || typeof key === "number" ? String(key) : typeof key;

/** What a dict has under a part of a path, which may stand for a number. */
const entryOf = (dict: Dict | undefined, part: string): PickleValue | undefined =>
  dict?.get(part) ?? (/^\d+$/.test(part) ? dict?.get(Number(part)) : undefined);

/** What a dotted path leads to. */
function at(value: PickleValue, key: string, source: string | undefined): PickleValue {
  let inner: PickleValue | undefined = value;
  for (const part of keysIn(key)) {
    const dict: Dict | undefined = dictOf(inner);
    inner = entryOf(dict, part);
    if (inner === undefined)
      throw new TorchFileError(
        "state-dict",
        `has nothing under the key ${quote(key)}: ${keysOf(dict)}`,
        { source },
      );
  }
  return inner as PickleValue;
}

/** The tensors that a dict has under its own keys, or a module in its parts. Not those of dicts within. */
function tensorsIn(value: PickleValue, source: string | undefined): Map<string, TensorRecord> {
  const tensors = new Map<string, TensorRecord>();
  for (const [name, entry] of moduleEntries(value, source) ?? dictOf(value) ?? []) {
    const record =
      typeof name === "string" ? tensorRecordOf(entry, { source, tensor: name }) : undefined;
    if (record) tensors.set(name as string, record);
  }
  return tensors;
}

const isTensor = (value: PickleValue): boolean =>
  value instanceof PickleObject &&
  value.callee instanceof PickleGlobal &&
  value.callee.name.startsWith("_rebuild_");

/** A dict or a subclass of dict. */
function dictOf(value: PickleValue | undefined): Dict | undefined {
  if (value instanceof Map) return value;
  if (!(value instanceof PickleObject) || moduleStateOf(value)) return undefined;
  return value.entries ?? (isCallOf(value, "collections.OrderedDict") ? new Map() : undefined);
}

/** The `__dict__` of a `torch.nn.Module` that was saved whole. */
function moduleStateOf(value: PickleValue | undefined): Dict | undefined {
  const state = value instanceof PickleObject ? value.state : undefined;
  return state instanceof Map && state.has("_parameters") && state.has("_modules")
    ? state
    : undefined;
}

/** Modules, and their parameters and buffers. A model of a billion parameters has thousands. */
const mostParts = 1_000_000;

/** Names and values of the parameters and buffers of a module and all modules in it; undefined for what is no module. */
function moduleEntries(
  value: PickleValue,
  source: string | undefined,
): readonly (readonly [string, PickleValue])[] | undefined {
  const whole = moduleStateOf(value);
  if (whole === undefined) return undefined;
  const entries: [string, PickleValue][] = [];
  const waiting: [prefix: string, state: Dict, depth: number][] = [["", whole, 0]];
  // Cut off by number and depth, because a pickle may make a module a part of itself.
  for (let seen = 0; waiting.length > 0; seen++) {
    const [prefix, state, depth] = waiting.pop() as (typeof waiting)[number];
    if (seen + waiting.length + entries.length > mostParts || depth > 100)
      throw new TorchFileError("too-large", "the saved module has too many modules in it", {
        source,
      });
    const transient = setOf(state.get("_non_persistent_buffers_set"));
    for (const field of ["_parameters", "_buffers"])
      for (const [name, tensor] of dictOf(state.get(field)) ?? [])
        if (typeof name === "string" && !transient.has(name)) entries.push([prefix + name, tensor]);
    const inner = [...(dictOf(state.get("_modules")) ?? [])].reverse();
    for (const [name, child] of inner) {
      const inside = moduleStateOf(child);
      if (typeof name === "string" && inside)
        waiting.push([`${prefix}${name}.`, inside, depth + 1]);
    }
  }
  return entries;
}

/** A set, which protocol 2 writes as a call. */
function setOf(value: PickleValue | undefined): ReadonlySet<PickleValue> {
  if (value instanceof Set) return value;
  const [items] =
    isCallOf(value, "__builtin__.set", "builtins.set") && Array.isArray(value.args)
      ? (value.args as readonly PickleValue[])
      : [];
  return new Set(Array.isArray(items) ? items : []);
}

function nothingIn(value: PickleValue, path: readonly string[]): string {
  const dict = dictOf(value);
  const unnamed = [...(dict ?? [])].filter(([key]) => typeof key !== "string");
  const tensors = unnamed.filter(([, entry]) => isTensor(entry)).map(([key]) => nameOf(key));
  if (tensors.length > 0)
    return `has tensors under keys that are no text (${listed(tensors)}), which are not read: save them by names`;
  const search = new TensorSearch(deepest, { intoLists: false });
  const [deeper] = unnamed.filter(([, entry]) => search.has(entry)).map(([key]) => nameOf(key));
  if (deeper !== undefined)
    return `has tensors only under keys that are no text: ${keysOf(dict)}. Choose one by the option key, such as ${quote([...path, deeper].join("."))}, or save the state_dict() of the model`;
  if (dict) return `has no tensors: ${keysOf(dict)}. Save the state_dict() of the model`;
  const callee = value instanceof PickleObject ? value.callee : undefined;
  const what = callee instanceof PickleGlobal ? `an object of ${quote(callee.path)}` : "no dict";
  return `holds ${what}, and no tensors by name: save the state_dict() of the model`;
}

const keysOf = (dict: Dict | undefined): string => {
  const keys = [...(dict?.keys() ?? [])].slice(0, 8).map((key) => quote(nameOf(key)));
  return keys.length === 0 ? "it is an empty dict" : `its keys are ${keys.join(", ")}`;
};
