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
