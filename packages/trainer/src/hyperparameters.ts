import type { GradScaler } from "@halfstep/grad-scaler";
import type { Storage, Tensor } from "@halfstep/tensor";
import type { Hyperparameters, Settings, SettingValue } from "./summary.js";
import type { TrainableOptimizer } from "./train.js";

/** The members of `@halfstep/optim`'s optimizers that list their hyperparameters. */
interface TellingOptimizer {
  readonly algorithm?: string;
  readonly paramGroups?: readonly object[];
}

/**
 * The hyperparameters of an optimizer and a scaler. Options that differ between groups of parameters are listed by
 * group.
 */
export function hyperparametersOf(
  optimizer: TrainableOptimizer,
  scaler: GradScaler<Storage, Tensor>,
): Hyperparameters {
  const { algorithm, paramGroups = [] } = optimizer as TellingOptimizer;
  const groups = paramGroups.map(({ params: _, ...options }: { readonly params?: unknown }) =>
    plain(options),
  );
  const names = [...new Set(groups.flatMap((group) => Object.keys(group)))];
  const isShared = (name: string): boolean =>
    groups.every((group) => JSON.stringify(group[name]) === JSON.stringify(groups[0]?.[name]));
  const only = (group: Settings, chosen: readonly string[]): Settings =>
    Object.fromEntries(chosen.map((name) => [name, group[name] ?? null]));
  const own = names.filter((name) => !isShared(name));
  return {
    optimizer: {
      ...(algorithm !== undefined && { algorithm }),
      ...only(groups[0] ?? {}, names.filter(isShared)),
    },
    ...(own.length > 0 && { groups: groups.map((group) => only(group, own)) }),
    lossScale: scaler.enabled ? plain(scaler.rule) : {},
  };
}

/** The options of an optimizer that a checkpoint has replaced by its own, as in torch; undefined where there are none. */
export function changedOptions(
  given: Hyperparameters,
  now: Hyperparameters,
  path: string,
): string | undefined {
  const changesOf = (from: Settings, to: Settings): string[] =>
    Object.entries(to).flatMap(([name, value]) => {
      const [was, is] = [from[name], value].map((each) => JSON.stringify(each));
      return was === undefined || was === is ? [] : [`${name} ${is}, not ${was}`];
    });
  const changes = new Set([
    ...changesOf(given.optimizer, now.optimizer),
    ...(now.groups ?? []).flatMap((group, i) =>
      changesOf({ ...given.optimizer, ...given.groups?.[i] }, group),
    ),
  ]);
  if (changes.size === 0) return undefined;
  return `the optimizer goes on with the options of ${path}: ${[...changes].join("; ")}. A learning rate that is a function stays as given`;
}

const plain = (options: object): Settings =>
  Object.fromEntries(Object.entries(options).map(([name, value]) => [name, settingValue(value)]));

/** A value for JSON; a function is only noted as present. */
const settingValue = (value: unknown): SettingValue =>
  Array.isArray(value) ? value.map(plainValue) : plainValue(value);

function plainValue(value: unknown): string | number | boolean | null {
  if (typeof value === "function") return "by a schedule";
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "boolean") return value;
  return value === undefined || value === null ? null : String(value);
}
