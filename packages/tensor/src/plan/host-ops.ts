import type { Binding, Launch } from "@halfstep/device";
import { overlaps } from "../record/bindings.js";
import {
  type HostOp,
  type HostOpDefinition,
  type HostPart,
  hostKernel,
} from "../record/host-op.js";
import type { Storage } from "../record/storage.js";
import { isWrite, type PlanGraph, type PlanNode } from "./graph.js";
import { commitState, isBeforeState } from "./passes/commit-state.js";
import { divideHostOps } from "./passes/divide-host-ops.js";
import { findRows, keepRowsApart } from "./passes/keep-rows-apart.js";

/** A function of the host between the launches of a plan. It cuts the plan into segments, which are submitted in turn. */
export interface PlannedHostOp {
  /** Its position among the launches of the plan. */
  readonly position: number;
  /** The position in the recording of the launch that has the function. */
  readonly recorded: number;
  readonly part: HostPart;
  /**
   * The launches from this position on wait for its results: the beginning of the segment of the first one that uses them, at the latest
   * of the last segment.
   */
  readonly awaitedAt: number;
}

/** How the host ops of a recording are planned. */
interface HostOpPlanning {
  /** The graph for the passes. */
  readonly prepared: PlanGraph;
  /** The graph behind the passes, with host ops divided and writes of state behind them. */
  arranged(passed: PlanGraph): PlanGraph;
  /** The host ops of a plan, in order. */
  listed(nodes: readonly PlanNode[]): readonly PlannedHostOp[];
}

/** A host op with what plans of it take besides passes, so that the planner of programs without host ops does not hold that. */
interface PlannableHostOp extends HostOp {
  readonly planning: typeof planHostOps;
}

/** Defines a host op: launch it with `hostLaunch()` on the target of a runtime. Define each once, because plans are cached by it. */
export function defineHostOp(definition: HostOpDefinition): HostOp {
  return Object.assign(hostKernel(definition), { planning: planHostOps });
}

/** The first host op of a graph; undefined where there is none. */
export const hostOpIn = ({ nodes }: PlanGraph): PlannableHostOp | undefined =>
  nodes.find(({ part }) => part)?.launch.kernel as PlannableHostOp | undefined;

/**
 * The planning of the host ops of a recording. Processes that exchange parts divide them alike, so what is found depends neither on passes
 * nor on searches, which each process begins when it has read that a step was bad.
 *
 * @param unsearched the graph without the launches of searches.
 * @param divides whether host ops are divided.
 */
export function planHostOps(
  recorded: PlanGraph,
  unsearched: PlanGraph,
  divides: boolean,
): HostOpPlanning {
  const rows = divides ? findRows(unsearched) : [];
  const plain = keepRowsApart(unsearched, rows);
  const operands = new Set<Storage>();
  for (const node of plain.nodes)
    if (isBeforeState(node)) for (const { buffer } of node.launch.bindings) operands.add(buffer);
  return {
    prepared: keepRowsApart(recorded, rows),
    arranged: (passed) => commitState(divideHostOps(passed, plain, divides), operands),
    listed: hostOpsOf,
  };
}

/** The host ops of a plan, in order. */
function hostOpsOf(nodes: readonly PlanNode[]): readonly PlannedHostOp[] {
  const ops = nodes.flatMap(({ part, recorded }, position) =>
    part ? [{ position, recorded: recorded[0] as number, part }] : [],
  );
  const starts = [0, ...ops.map(({ position }) => position + 1)];
  const startOf = (position: number): number => starts.findLast((start) => start <= position) ?? 0;
  return ops.map((op) => {
    const user = firstUserOf(nodes, op.position);
    const awaitedAt = startOf(user < 0 ? nodes.length : user);
    return { ...op, awaitedAt };
  });
}

/** The position of the first launch behind a host op that uses what it writes; −1 where none does. */
function firstUserOf(nodes: readonly PlanNode[], position: number): number {
  const op = nodes[position] as PlanNode;
  const written = op.launch.bindings.filter((_, b) => isWrite(op, b));
  const uses = ({ bindings }: Launch<Storage>): boolean =>
    bindings.some((binding: Binding<Storage>) =>
      written.some((result) => result.buffer === binding.buffer && overlaps(result, binding)),
    );
  return nodes.findIndex(({ launch }, n) => n > position && uses(launch));
}
