import type { Binding } from "@halfstep/device";
import { type CopyingKernel, canCopy, isCopyOfValues, withCopy } from "@halfstep/kernels/planner";
import { hasConflict, maxBindings } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import type { Pass, PlanNode } from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Makes an optimizer's update store the rounded copy of its parameters, which a separate launch would make right after it.
 * Before the update the copy matches the parameters; so it also matches where the update changes nothing, because it is
 * skipped or has no gradient.
 */
export const storeHalfCopies: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const node = work.at(n);
    if (!node || !isCopyOfValues(node.launch.kernel)) continue;
    const [values, copy] = node.launch.bindings as [Binding<Storage>, Binding<Storage>];
    const writers = work.usesOf(values.buffer).writes.filter((use) => use.node < n);
    const last = Math.max(...writers.map((use) => use.node));
    const update = work.at(last);
    if (!update || !canCopy(update.launch.kernel)) continue;
    if (work.isTouchedBetween(copy, last, n, "any")) continue;
    const launch = withCopy(
      update.launch as PlanNode["launch"] & { readonly kernel: CopyingKernel },
      copy,
    );
    if (launch.bindings.length > maxBindings || hasConflict(launch)) continue;
    work.remove(n);
    work.replace(last, {
      ...update,
      launch,
      recorded: [...update.recorded, ...node.recorded],
    });
  }
  return work.graph();
};
