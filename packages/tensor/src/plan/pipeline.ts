import { ArgumentError } from "../errors.js";
import type { Pass, PlanGraph } from "./graph.js";
import { foldAccumulations } from "./passes/fold-accumulations.js";
import { foldCasts } from "./passes/fold-casts.js";
import { foldHeadLayouts } from "./passes/fold-head-layouts.js";
import { fuseElementwise } from "./passes/fuse-elementwise.js";
import { fuseEpilogues } from "./passes/fuse-epilogues.js";
import { fuseFiniteChecks } from "./passes/fuse-finite-checks.js";
import { fuseScaleUpdate } from "./passes/fuse-scale-update.js";
import { narrowStorage } from "./passes/narrow-storage.js";
import { padRows } from "./passes/pad-rows.js";
import { rematerializeSums } from "./passes/rematerialize-sums.js";
import { removeDeadLaunches } from "./passes/remove-dead-launches.js";
import { storeBothPrecisions } from "./passes/store-both-precisions.js";
import { storeHalfCopies } from "./passes/store-half-copies.js";

/** A pass of the planner. */
export type PassName =
  | "removeDeadLaunches"
  | "foldCasts"
  | "foldHeadLayouts"
  | "storeHalfCopies"
  | "narrowStorage"
  | "rematerializeSums"
  | "fuseElementwise"
  | "fuseEpilogues"
  | "storeBothPrecisions"
  | "padRows"
  | "foldAccumulations"
  | "fuseFiniteChecks"
  | "fuseScaleUpdate"
  | "divideHostOps"
  | "reuseMemory";

/** Every pass, in the order in which they run. */
export const allPasses: readonly PassName[] = [
  "removeDeadLaunches",
  "foldCasts",
  "foldHeadLayouts",
  "storeHalfCopies",
  "narrowStorage",
  "rematerializeSums",
  "fuseElementwise",
  "fuseEpilogues",
  "storeBothPrecisions",
  "padRows",
  "foldAccumulations",
  "fuseFiniteChecks",
  "fuseScaleUpdate",
  "divideHostOps",
  "reuseMemory",
];

/** Passes that need more than the graph. */
type OtherPass = "divideHostOps" | "reuseMemory";

const graphPasses: Readonly<Record<Exclude<PassName, OtherPass>, Pass>> = {
  removeDeadLaunches,
  foldCasts,
  foldHeadLayouts,
  storeHalfCopies,
  narrowStorage,
  rematerializeSums,
  fuseElementwise,
  fuseEpilogues,
  storeBothPrecisions,
  padRows,
  foldAccumulations,
  fuseFiniteChecks,
  fuseScaleUpdate,
};

/** The goal of plans where speed and memory conflict. */
export type OptimizationGoal = "speed" | "memory";

/** Passes that lengthen a step to lower its peak memory. */
const memoryPasses: ReadonlySet<PassName> = new Set(["rematerializeSums"]);

/** Passes that take memory to shorten a step. */
const speedPasses: ReadonlySet<PassName> = new Set(["padRows"]);

/**
 * The passes for a goal; all of them without one.
 *
 * @throws ArgumentError for a goal that does not exist
 */
export function passesFor(goal: OptimizationGoal | undefined): readonly PassName[] {
  if (goal === undefined) return allPasses;
  if (goal !== "speed" && goal !== "memory")
    throw new ArgumentError(`optimizeFor is ${String(goal)}; it takes "speed" or "memory"`);
  const leftOut = goal === "speed" ? memoryPasses : speedPasses;
  return allPasses.filter((name) => !leftOut.has(name));
}

/** Passes for CPU adapters only: GPUs gain nothing from them, or do not guarantee what they rely on. */
const softwarePasses: ReadonlySet<PassName> = new Set(["padRows", "fuseFiniteChecks"]);

/** The graph after the requested passes, for a class of hardware. */
export function transformed(
  recorded: PlanGraph,
  passes: readonly PassName[],
  hardwareClass: string | undefined,
): PlanGraph {
  let graph = recorded;
  for (const name of allPasses) {
    if (name === "divideHostOps" || name === "reuseMemory" || !passes.includes(name)) continue;
    if (softwarePasses.has(name) && hardwareClass !== "software") continue;
    graph = graphPasses[name](graph);
  }
  return graph;
}
