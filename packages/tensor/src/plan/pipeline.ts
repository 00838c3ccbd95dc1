import { ArgumentError } from "../errors.js";
import type { Pass, PlanGraph } from "./graph.js";
import { foldCasts } from "./passes/fold-casts.js";
import { fuseElementwise } from "./passes/fuse-elementwise.js";
import { fuseEpilogues } from "./passes/fuse-epilogues.js";
import { narrowStorage } from "./passes/narrow-storage.js";
import { padRows } from "./passes/pad-rows.js";
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

/** Passes from graph to graph, by name. */
export type GraphPasses = { readonly [N in Exclude<PassName, OtherPass>]?: Pass };

/** The passes of every runtime. The others come with the functions whose launches they transform: see `Runtime.bring()`. */
const ownPasses: GraphPasses = {
  removeDeadLaunches,
  foldCasts,
  storeHalfCopies,
  narrowStorage,
  fuseElementwise,
  fuseEpilogues,
  storeBothPrecisions,
  padRows,
};

/** How the recordings of a runtime are planned. */
export interface Planning {
  readonly passes: readonly PassName[];
  /** Passes besides those of every runtime. None of them changes the plan of a recording that was made before it was brought. */
  readonly brought: GraphPasses;
  readonly hardwareClass: string | undefined;
}

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
  { passes, brought, hardwareClass }: Planning,
): PlanGraph {
  const known = { ...ownPasses, ...brought };
  let graph = recorded;
  for (const name of allPasses) {
    if (name === "divideHostOps" || name === "reuseMemory" || !passes.includes(name)) continue;
    if (softwarePasses.has(name) && hardwareClass !== "software") continue;
    graph = known[name]?.(graph) ?? graph;
  }
  return graph;
}
