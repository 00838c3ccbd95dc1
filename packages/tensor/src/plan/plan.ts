import { type Binding, type Launch, sizeClass } from "@halfstep/device";
import { isHostOp } from "../record/host-op.js";
import type { Recording } from "../record/recording.js";
import type { Storage } from "../record/storage.js";
import { assignMemory, heldForBackward } from "./assign-memory.js";
import type { PlanGraph, PlanNode, ScalarSource } from "./graph.js";
import { hostOpIn, type PlannedHostOp } from "./host-ops.js";
import { type LaunchNote, launchNotes } from "./launch-notes.js";
import { isCopy } from "./passes/fold-casts.js";
import { type Planning, transformed } from "./pipeline.js";

/** Memory as a plan names it: a slot of its own, or a resident of the recording, numbered by first appearance. */
export type PlanBuffer =
  | { readonly kind: "slot"; readonly index: number }
  | { readonly kind: "resident"; readonly index: number };

/** A launch after planning. */
export interface PlannedLaunch {
  readonly launch: Launch<PlanBuffer>;
  /** Runtime scalars, to be read from each recording that the plan runs. */
  readonly sources: ReadonlyMap<string, ScalarSource>;
  /** Positions in the recording of the launches that this one replaces: more than one where they were fused. */
  readonly recorded: readonly number[];
  readonly isBackward: boolean;
  /** Present where the recording noted its ops, as that of `runtime.plan()` does. */
  readonly note?: LaunchNote;
}

/** A value that shares a slot with others over time. */
export interface PlannedValue {
  readonly slot: number;
  readonly bytes: number;
  /** The launch that writes it first; −1 where the host does. */
  readonly first: number;
  /** The last launch that uses it; the number of launches where it outlives them. */
  readonly last: number;
  /**
   * `input`: from the host; `activation`: of the forward pass, and read by the backward pass; `kept`: outlives the step;
   * `gradient`: first written by the backward pass or after it; `temporary`: of the forward pass alone. The first role that
   * applies.
   */
  readonly role: "kept" | "activation" | "input" | "gradient" | "temporary";
}

/** Launches over slots, planned from a recording. A plan is valid for every recording of equal structure. */
export interface Plan {
  readonly launches: readonly PlannedLaunch[];
  /** The launches that functions of the host carry out, in order. */
  readonly hostOps: readonly PlannedHostOp[];
  /** Bytes of each slot. */
  readonly slots: readonly number[];
  /** The values in the slots, in the order in which their lifetimes begin. */
  readonly values: readonly PlannedValue[];
  /** Bytes of each resident that the plan uses: parameters, gradients, the optimizer's state. */
  readonly residents: readonly number[];
  /** Slot of each of the recording's inputs, in order; undefined where nothing reads the input. */
  readonly inputs: readonly (number | undefined)[];
  /** Slot of each transient that the recording keeps, in order. */
  readonly kept: readonly { readonly slot: number; readonly bytes: number }[];
  readonly statistics: PlanStatistics;
}

/** Figures of a plan and its recording. */
export interface PlanStatistics {
  /** Launches as recorded, and as planned. */
  readonly recordedLaunches: number;
  readonly launches: number;
  /** Casts and copies as recorded, and those that still cost a launch. */
  readonly recordedCasts: number;
  readonly casts: number;
  /** Bytes that a device allocates for all slots, and for the tensors that the recording keeps. */
  readonly peakBytes: number;
  /** Bytes that the forward pass leaves for the backward pass. */
  readonly activationBytes: number;
}

/** A plan for a recording: a pure function of its arguments. */
export function plan(recording: Recording, planning: Planning): Plan {
  const { passes } = planning;
  const recorded = graphOf(recording);
  const unsearched = recording.unsearched ?? recording.launches;
  const hostOps = hostOpIn(recorded)?.planning(
    recorded,
    graphOf({ launches: unsearched, backwardStart: undefined, kept: recording.kept }),
    passes.includes("divideHostOps"),
  );
  const passed = transformed(hostOps?.prepared ?? recorded, planning);
  const graph = hostOps?.arranged(passed) ?? passed;
  const { slotOf, slots, lives } = assignMemory(graph, passes.includes("reuseMemory"));
  const residents = residentNumbers(recording);
  const locate = (storage: Storage): PlanBuffer =>
    storage.isResident
      ? { kind: "resident", index: residents.get(storage) as number }
      : { kind: "slot", index: slotOf.get(storage) as number };
  const kept = [...recording.kept].map((storage) => ({
    slot: slotOf.get(storage) as number,
    bytes: storage.byteLength,
  }));
  const held = heldForBackward(graph.nodes);
  const noteOf = launchNotes(recording);
  return {
    launches: graph.nodes.map((node): PlannedLaunch => {
      const { launch, sources, recorded: positions, isBackward } = node;
      const bindings = launch.bindings.map((b) => ({ ...b, buffer: locate(b.buffer) }));
      const note = noteOf?.(node);
      const planned = { launch: { ...launch, bindings }, sources, recorded: positions, isBackward };
      return note ? { ...planned, note } : planned;
    }),
    hostOps: hostOps?.listed(graph.nodes) ?? [],
    slots,
    values: lives.map(({ storage, first, last }) => ({
      slot: slotOf.get(storage) as number,
      bytes: storage.byteLength,
      ...{ first, last },
      role: roleOf(storage, recording, held, graph.nodes[first]),
    })),
    residents: [...residents.keys()].map(({ byteLength }) => byteLength),
    inputs: recording.inputs.map((storage) => slotOf.get(storage)),
    kept,
    statistics: {
      recordedLaunches: recorded.nodes.length,
      launches: graph.nodes.length,
      recordedCasts: recorded.nodes.filter(isCast).length,
      casts: graph.nodes.filter(isCast).length,
      peakBytes: sum(slots) + sum(kept.map(({ bytes }) => sizeClass(bytes))),
      activationBytes: sum([...held].map(({ byteLength }) => byteLength)),
    },
  };
}

const sum = (bytes: readonly number[]): number => bytes.reduce((a, b) => a + b, 0);

function roleOf(
  storage: Storage,
  { kept }: Recording,
  held: ReadonlySet<Storage>,
  writer: PlanNode | undefined,
): PlannedValue["role"] {
  if (kept.has(storage)) return "kept";
  if (held.has(storage)) return "activation";
  if (storage.hostData) return "input";
  return writer?.isBackward ? "gradient" : "temporary";
}

/** Residents in the order in which a recording first uses them. */
function residentNumbers(recording: Recording): Map<Storage, number> {
  const numbers = new Map<Storage, number>();
  for (const { bindings } of recording.launches)
    for (const { buffer } of bindings)
      if (buffer.isResident && !numbers.has(buffer)) numbers.set(buffer, numbers.size);
  return numbers;
}

interface RecordedLaunches extends Pick<Recording, "backwardStart" | "kept"> {
  readonly launches: readonly Launch<Storage>[];
}

/** The launches of a recording, as passes see them. */
export function graphOf({ launches, backwardStart, kept }: RecordedLaunches): PlanGraph {
  const nodes = launches.map((launch, index): PlanNode => {
    const sources = new Map<string, ScalarSource>();
    for (const { name, runtime } of launch.kernel.scalars)
      if (runtime) sources.set(name, { launch: index, name });
    const isBackward = backwardStart !== undefined && index >= backwardStart;
    const node = { launch, sources, recorded: [index], isBackward };
    return isHostOp(launch.kernel) ? asHostOp(node) : node;
  });
  return { nodes, kept };
}

/** The node of a host op, without its function: plans outlive recordings. */
function asHostOp(node: PlanNode): PlanNode {
  const { kernel, bindings, scalars } = node.launch;
  const part = { index: 0, count: 1, offset: 0, length: bindings[0]?.length ?? 0 };
  return { ...node, launch: { kernel, bindings, scalars }, part };
}

/** Whether a launch only changes a dtype. */
function isCast(node: PlanNode): boolean {
  if (!isCopy(node)) return false;
  const [from, to] = node.launch.bindings as [Binding<Storage>, Binding<Storage>];
  return from.dtype !== to.dtype;
}
