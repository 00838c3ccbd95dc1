import type { GradScaler } from "@halfstep/grad-scaler";
import type { Storage, Tensor } from "@halfstep/tensor";
import type { Hyperparameters } from "./summary.js";
import type { TrainableOptimizer } from "./train.js";

/** What optimizers of `@halfstep/optim` tell besides what training needs. */
interface TellingOptimizer {
  readonly algorithm?: string;
  readonly paramGroups?: readonly object[];
}

/** What an optimizer and a scaler were made with; of groups that differ, the values of all. */
export function hyperparametersOf(
  optimizer: TrainableOptimizer,
  scaler: GradScaler<Storage, Tensor>,
): Hyperparameters {
  const { algorithm, paramGroups = [] } = optimizer as TellingOptimizer;
  const names = new Set(paramGroups.flatMap((group) => Object.keys(group)));
  names.delete("params");
  const own = [...names].map((name) => {
    const values = paramGroups.map((group) => shown((group as Record<string, unknown>)[name]));
    return [name, [...new Set(values)].join(" | ")] as const;
  });
  return {
    optimizer: { ...(algorithm !== undefined && { algorithm }), ...Object.fromEntries(own) },
    lossScale: scaler.enabled ? plain(scaler.rule) : {},
  };
}

const plain = (rule: object): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(rule).map(([name, value]) => [name, shown(value)]));

const shown = (value: unknown): string => {
  if (typeof value === "function") return "by a schedule";
  return Array.isArray(value) ? value.join(", ") : String(value);
};
