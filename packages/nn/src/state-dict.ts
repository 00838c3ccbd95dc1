import { noGrad, type Variable } from "@halfstep/tensor";
import { StateDictError } from "./errors.js";

/** A parameter or buffer as plain data. */
export interface SavedTensor {
  readonly shape: readonly number[];
  /** How the module stores it. */
  readonly dtype: Variable["dtype"];
  /** The elements in row-major order; 16-bit ones decoded, which loses nothing. */
  readonly data: Float32Array | Float64Array | Int32Array | Uint32Array;
}

/** Parameters and buffers by dotted path. */
export type StateDict = Readonly<Record<string, SavedTensor>>;

/** What `loadStateDict()` did not find a counterpart for. */
export interface StateDictKeys {
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];
}

type NamedVariables = Iterable<readonly [path: string, variable: Variable]>;

export async function stateDictOf(variables: NamedVariables): Promise<StateDict> {
  const entries = [...variables].map(async ([path, variable]): Promise<[string, SavedTensor]> => {
    const { shape, dtype } = variable;
    return [path, { shape, dtype, data: await variable.toArray() }];
  });
  return Object.fromEntries(await Promise.all(entries));
}

export function loadStateDict(
  variables: NamedVariables,
  state: StateDict,
  strict: boolean,
): StateDictKeys {
  const own = new Map(variables);
  const missing = [...own.keys()].filter((path) => !Object.hasOwn(state, path));
  const unexpected = Object.keys(state).filter((path) => !own.has(path));
  const found = [...own].flatMap(([path, variable]) => {
    const saved = Object.hasOwn(state, path) ? state[path] : undefined;
    return saved ? [{ path, variable, saved }] : [];
  });
  const misfits = found.filter(({ variable, saved }) => !fits(variable, saved));
  const problems = [
    ...(strict ? missing : []).map((path) => `${path} is missing`),
    ...(strict ? unexpected : []).map((path) => `${path} is unexpected`),
    ...misfits.map(
      ({ path, variable, saved }) =>
        `${path} has shape [${saved.shape}] with ${saved.data.length} elements, the module's has [${variable.shape}]`,
    ),
  ];
  if (problems.length > 0)
    throw new StateDictError(
      `the state dict does not fit the module, and nothing was loaded: ${problems.join("; ")}.${
        strict && misfits.length === 0 ? " Pass { strict: false } to load what fits." : ""
      }`,
      { missing, unexpected, misshapen: misfits.map(({ path }) => path) },
    );
  for (const { variable, saved } of found) overwrite(variable, saved);
  return { missing, unexpected };
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
