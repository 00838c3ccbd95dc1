import type { Binding } from "@halfstep/device";
import { controlAndScale, isPlainScaleUpdate } from "@halfstep/kernels/planner";
import { hasConflict, maxBindings } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import type { Pass, PlanNode } from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Makes the launch that prepares an optimizer's step also update the loss scale, where no launch in between reads the scale or its
 * flags. Each of the two launches is one invocation: a software driver wakes its threads for it, and a GPU waits for it.
 */
export const fuseScaleUpdate: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const joined = joinedControl(work, n);
    if (!joined) continue;
    work.remove(n);
    work.replace(joined.position, joined.node);
  }
  return work.graph();
};

function joinedControl(
  work: Rewriting,
  n: number,
): { readonly position: number; readonly node: PlanNode } | undefined {
  const update = work.at(n);
  if (!update || !isPlainScaleUpdate(update.launch.kernel)) return undefined;
  const { bindings } = update.launch;
  const isFree = (position: number): boolean =>
    bindings.every((binding) => !work.isTouchedBetween(binding, position, n, "any"));
  // Only the last reader of the flag has no other reader between itself and the update.
  const [, foundInf] = bindings as readonly Binding<Storage>[];
  const readers = foundInf ? work.usesOf(foundInf.buffer).reads : [];
  const position = Math.max(...readers.map(({ node }) => node).filter((node) => node < n));
  const control = work.at(position);
  const launch = control && controlAndScale(control.launch, update.launch);
  if (!launch || launch.bindings.length > maxBindings || hasConflict(launch) || !isFree(position))
    return undefined;
  const sources = new Map([...control.sources, ...update.sources]);
  const recorded = [...control.recorded, ...update.recorded];
  return { position, node: { ...control, launch, sources, recorded } };
}
