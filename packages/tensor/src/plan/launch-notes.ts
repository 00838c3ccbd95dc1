import type { Launch as AnyLaunch, Binding } from "@halfstep/device";
import type { CastDecision } from "../record/cast-decision.js";
import type { OpNote } from "../record/op-notes.js";
import type { RecordedTensor } from "../record/recorded-tensor.js";
import type { Recording } from "../record/recording.js";
import type { Storage } from "../record/storage.js";
import type { PlanNode } from "./graph.js";

type Launch = AnyLaunch<Storage>;

/** An op that a launch computes, or a part of it. */
export interface LaunchedOp {
  readonly op: string;
  /** Path of the module that applied the op; "" where none did. */
  readonly module: string;
  /** The op whose gradient this one is part of, in backward passes. */
  readonly backwardOf?: string;
  /** What autocast decided. Absent for the casts that it made, and for other changes of a dtype. */
  readonly decision?: CastDecision;
}

/** The ops and operands of a launch, for people. */
export interface LaunchNote {
  /** In the order in which they were recorded. Empty for launches of no op: optimizers, loss scaling. */
  readonly ops: readonly LaunchedOp[];
  /** Shape and name of each operand, where they are known. */
  readonly operands: readonly {
    readonly shape?: readonly number[];
    readonly name?: string;
  }[];
}

/**
 * Returns a function from nodes of a recording's graph to their notes; undefined where the recording has not noted its ops.
 */
export function launchNotes({
  notes,
  launches,
}: Recording): ((node: PlanNode) => LaunchNote) | undefined {
  if (!notes) return undefined;
  const tensors = new Map<Storage, Set<RecordedTensor>>();
  for (const { inputs, outputs } of new Set(notes.values()))
    for (const tensor of [...inputs, ...outputs]) {
      const known = tensors.get(tensor.storage);
      if (known) known.add(tensor);
      else tensors.set(tensor.storage, new Set([tensor]));
    }
  return ({ launch, recorded }) => {
    const applied = [...new Set(recorded.flatMap((i) => notes.get(launches[i] as Launch) ?? []))];
    // A value that a pass has moved to another storage keeps its size.
    const shapeOf = (length: number): LaunchNote["operands"][number] => {
      const results = applied.flatMap(({ outputs, inputs }) => [...outputs, ...inputs]);
      const same = results.find(({ size }) => size === length);
      return same ? { shape: same.shape } : {};
    };
    return {
      ops: applied.filter(isFirstOfComposite).map(opOf),
      operands: launch.bindings.map(
        (binding) =>
          operandOf(binding, tensors.get(binding.buffer)) ??
          (binding.buffer.isResident ? {} : shapeOf(binding.length)),
      ),
    };
  };
}

/** A composite is named once, however many of its ops a launch computes. */
const isFirstOfComposite = ({ scope }: OpNote, i: number, notes: readonly OpNote[]): boolean =>
  scope?.composite === undefined || notes.findIndex((other) => other.scope === scope) === i;

function opOf({ op, scope, decision }: OpNote): LaunchedOp {
  const { backwardOf } = scope ?? {};
  const module = scope?.path() ?? "";
  return { op, module, ...(backwardOf && { backwardOf }), ...(decision && { decision }) };
}

function operandOf(
  { offset, length }: Binding<Storage>,
  tensors: ReadonlySet<RecordedTensor> = new Set(),
): LaunchNote["operands"][number] | undefined {
  const same = [...tensors].filter((tensor) => tensor.offset === offset && tensor.size === length);
  const [first] = same;
  if (!first) return undefined;
  const named = same.map(({ name }) => name).find(Boolean);
  return { shape: first.shape, ...(named && { name: named }) };
}
