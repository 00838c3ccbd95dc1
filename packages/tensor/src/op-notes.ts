import type { Launch } from "@halfstep/device";
import type { Recording } from "./recording.js";
import { currentScope, type Scope } from "./scope.js";
import type { Storage } from "./storage.js";
import type { Tensor } from "./tensor.js";

/** One application of an op. */
export interface OpNote {
  readonly op: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly scope: Scope | undefined;
}

/** Which application of an op each launch of a recording belongs to. */
export type OpNotes = Map<Launch<Storage>, OpNote>;

/** Runs `record`, and notes the op that its launches belong to where the recording asks for it. */
export function noteOp(recording: Recording, op: Omit<OpNote, "scope">, record: () => void): void {
  const first = recording.launches.length;
  record();
  const { notes } = recording;
  if (!notes) return;
  const note: OpNote = { ...op, scope: currentScope() };
  for (const launch of recording.launches.slice(first)) notes.set(launch, note);
}
