import { type Fields, integerField, wordField } from "../site/url-state.js";
import { type TaskName, taskNames } from "../train/config.js";
import { type SetupId, setups } from "../train/setups.js";
import { type StageId, stages } from "./stages.js";

/** A kind of device for which programs are written. */
export type Tier = "native" | "packed";

/** What the page shows. */
export interface InsideState {
  readonly task: TaskName;
  readonly setup: SetupId;
  readonly stage: StageId;
  /** The position in the recording of the launch that is open, which later stages may have merged with others; −1 for none. */
  readonly at: number;
  readonly tier: Tier;
}

const ids = <Id extends string>(list: readonly { readonly id: Id }[]): readonly Id[] =>
  list.map(({ id }) => id);

/** How the address writes it. */
export const insideFields: Fields<InsideState> = {
  task: wordField<TaskName>("moons", taskNames),
  setup: wordField<SetupId>("float16", ids(setups)),
  stage: wordField<StageId>("recorded", ids(stages)),
  at: integerField(-1, -1, 99_999),
  tier: wordField<Tier>("native", ["native", "packed"]),
};
