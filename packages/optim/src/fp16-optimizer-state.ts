import type { ScalerStateDict } from "@halfstep/grad-scaler";
import { OptimizerStateError } from "./errors.js";
import type { SavedArray, SavedArrays } from "./saved-buffer.js";
import type { GroupStateDict, OptimizerStateDict } from "./state-dict.js";

/** float32 masters by parameter. */
export type Masters = Readonly<Record<string, SavedArray>>;

/** The saved state of `FP16Optimizer`: the members of apex's FP16_Optimizer, in camelCase. */
export interface FP16OptimizerStateDict {
  readonly lossScaler: ScalerStateDict | Record<string, never>;
  readonly dynamicLossScale: boolean;
  /** Whether the last step was skipped. */
  readonly overflow: boolean;
  /** Always true: states are saved between steps. */
  readonly firstClosureCallThisStep: boolean;
  readonly optimizerStateDict: OptimizerStateDict;
  /** float32 masters of 16-bit parameters, by group and parameter; empty for groups that keep none of that kind. */
  readonly fp32FromFp16: readonly Masters[];
}

/** The masters in an optimizer's state, by group: the same arrays. */
export const mastersOf = ({ groups }: OptimizerStateDict): readonly Masters[] =>
  groups.map(({ storage, state }) =>
    storage === "master"
      ? Object.fromEntries(
          Object.entries(state).map(([name, { master }]) => [name, master as SavedArray]),
        )
      : {},
  );

/** An optimizer's state with these masters instead of its own. */
export function withMasters(
  state: OptimizerStateDict,
  masters: readonly Masters[],
): OptimizerStateDict {
  if (masters.length !== state.groups.length)
    throw new OptimizerStateError(
      `the state has masters of ${masters.length} groups and moments of ${state.groups.length}: save both at once`,
    );
  const withOwn = (group: GroupStateDict, own: Masters): GroupStateDict => ({
    ...group,
    state: Object.fromEntries(
      Object.entries(group.state).map(([name, arrays]): [string, SavedArrays] => {
        const master = own[name];
        return [name, master ? { ...arrays, master } : arrays];
      }),
    ),
  });
  return { ...state, groups: state.groups.map((group, i) => withOwn(group, masters[i] ?? {})) };
}
