import type { Launch } from "@halfstep/device";
import type { CastDecision } from "./cast-decision.js";
import type { RecordedTensor } from "./recorded-tensor.js";
import { currentScope, type Scope } from "./scope.js";
import type { Storage } from "./storage.js";

/** One application of an op. */
export interface OpNote {
  readonly op: string;
  readonly inputs: readonly RecordedTensor[];
  readonly outputs: readonly RecordedTensor[];
  readonly scope: Scope | undefined;
  /** Absent for the casts themselves. */
  readonly decision?: CastDecision;
}

/** The application of an op to which each launch of a recording belongs. */
export type OpNotes = Map<Launch<Storage>, OpNote>;

/** Launches, and their notes if the recording keeps any. */
interface NotedLaunches {
  readonly notes: OpNotes | undefined;
  readonly launches: readonly Launch<Storage>[];
}

/** Notes the op to which the launches from `first` on belong, if the recording keeps notes. */
export function noteOp(
  { notes, launches }: NotedLaunches,
  first: number,
  op: string,
  inputs: readonly RecordedTensor[],
  outputs: readonly RecordedTensor[],
  decision?: CastDecision,
): void {
  if (!notes) return;
  const note: OpNote = {
    op,
    inputs,
    outputs,
    scope: currentScope(),
    ...(decision && { decision }),
  };
  for (const launch of launches.slice(first)) notes.set(launch, note);
}
