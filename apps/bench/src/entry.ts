import type { Subject, WarmedUp } from "./lane-process.js";
import type { LaneName } from "./lanes/names.js";
import type { Outcome } from "./results.js";
import type { Plan } from "./rounds.js";
import type { Sample } from "./statistics.js";
import type { Case } from "./workload.js";

/** A lane on a row, over all of its processes. */
export interface Entry {
  readonly lane: LaneName;
  readonly chosen: Case;
  readonly subject: Subject;
  readonly samples: Sample[];
  /** The counts of its processes, by process number from 0 on. */
  readonly warmedUp: Map<number, WarmedUp>;
  /** The largest of all processes. */
  difference: number;
  /** Milliseconds in which its first process made it ready, its check included. */
  preparation: number;
  /** Known when its first process is warm. */
  plan?: Plan;
  /** Why it is not timed, or no longer. */
  refusal?: Exclude<Outcome, { readonly status: "measured" }>;
}

export const entryOf = (lane: LaneName, chosen: Case, subject: Subject): Entry => ({
  lane,
  chosen,
  subject,
  samples: [],
  warmedUp: new Map(),
  difference: 0,
  preparation: 0,
});
