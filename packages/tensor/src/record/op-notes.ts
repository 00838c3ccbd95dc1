import type { Launch } from "@halfstep/device";
import type { RecordedTensor } from "./recorded-tensor.js";
import { currentScope, type Scope } from "./scope.js";
import type { Storage } from "./storage.js";

/** One application of an op. */
export interface OpNote {
  readonly op: string;
  readonly inputs: readonly RecordedTensor[];
  readonly outputs: readonly RecordedTensor[];
  readonly scope: Scope | undefined;
}

/** Which application of an op each launch of a recording belongs to. */
export type OpNotes = Map<Launch<Storage>, OpNote>;

/** Launches, and whose they are where that is noted. */
interface NotedLaunches {
  readonly notes: OpNotes | undefined;
  readonly launches: readonly Launch<Storage>[];
}

/** Notes the op that the launches from `first` on belong to, where the recording asks for it. */
export function noteOp(
  { notes, launches }: NotedLaunches,
  first: number,
  op: string,
  inputs: readonly RecordedTensor[],
  outputs: readonly RecordedTensor[],
): void {
  if (!notes) return;
  const note: OpNote = { op, inputs, outputs, scope: currentScope() };
  for (const launch of launches.slice(first)) notes.set(launch, note);
}
