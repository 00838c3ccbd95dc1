import type { Pass, PlanGraph } from "./graph.js";
import { addressHeads } from "./passes/address-heads.js";
import { checkStores } from "./passes/check-stores.js";
import { foldAccumulations } from "./passes/fold-accumulations.js";
import { foldCasts } from "./passes/fold-casts.js";
import { fuseElementwise, fuseRandom } from "./passes/fuse-elementwise.js";
import { fuseEpilogues } from "./passes/fuse-epilogues.js";
import { joinScaleUpdate } from "./passes/join-scale-update.js";
import { narrowStorage } from "./passes/narrow-storage.js";
import { recomputeSums } from "./passes/recompute-sums.js";
import { removeDead } from "./passes/remove-dead.js";
import { spreadRows } from "./passes/spread-rows.js";
import { storeCopies } from "./passes/store-copies.js";
import { storeTwins } from "./passes/store-twins.js";

/** A pass of the planner. */
export type PassName =
  | "removeDead"
  | "foldCasts"
  | "addressHeads"
  | "storeCopies"
  | "fuseElementwise"
  | "narrowStorage"
  | "recomputeSums"
  | "fuseRandom"
  | "fuseEpilogues"
  | "storeTwins"
  | "spreadRows"
  | "foldAccumulations"
  | "checkStores"
  | "joinScaleUpdate"
  | "reuseMemory";

/** Every pass, in the order in which they run. */
export const allPasses: readonly PassName[] = [
  "removeDead",
  "foldCasts",
  "addressHeads",
  "storeCopies",
  "fuseElementwise",
  "narrowStorage",
  "recomputeSums",
  "fuseRandom",
  "fuseEpilogues",
  "storeTwins",
  "spreadRows",
  "foldAccumulations",
  "checkStores",
  "joinScaleUpdate",
  "reuseMemory",
];

const graphPasses: Readonly<Record<Exclude<PassName, "reuseMemory">, Pass>> = {
  removeDead,
  foldCasts,
  addressHeads,
  storeCopies,
  fuseElementwise,
  narrowStorage,
  recomputeSums,
  fuseRandom,
  fuseEpilogues,
  storeTwins,
  spreadRows,
  foldAccumulations,
  checkStores,
  joinScaleUpdate,
};

/** Passes for hardware that is a CPU: others gain nothing, or may not do what they rely on. */
const softwarePasses: ReadonlySet<PassName> = new Set(["spreadRows", "checkStores"]);

/** The graph as the passes leave it that are asked for, on hardware of a class. */
export function transformed(
  recorded: PlanGraph,
  passes: readonly PassName[],
  hardwareClass: string | undefined,
): PlanGraph {
  let graph = recorded;
  for (const name of allPasses) {
    if (name === "reuseMemory" || !passes.includes(name)) continue;
    if (softwarePasses.has(name) && hardwareClass !== "software") continue;
    graph = graphPasses[name](graph);
  }
  return graph;
}
