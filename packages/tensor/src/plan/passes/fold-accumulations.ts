import type { Binding, HalfDType, Launch } from "@halfstep/device";
import {
  accumulating,
  canAccumulate,
  canStoreTwice,
  isAccumulation,
  storingTwice,
} from "@halfstep/kernels/planner";
import { accepts, hasConflict, maxBindings } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import { type Pass, type PlanNode, roundingBetween, sameRange } from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Makes the launch that produces a gradient add it to the gradient of earlier micro-batches, which saves the launch of the addition.
 * Where the gradient itself is also read, the launch stores it in addition.
 */
export const foldAccumulations: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const folded = intoProducer(work, n);
    if (!folded) continue;
    work.remove(n);
    work.replace(folded.position, folded.node);
  }
  return work.graph();
};

/**
 * The producer of the term that the launch at a position adds, changed to add it itself; undefined where the two cannot be fused.
 */
function intoProducer(
  work: Rewriting,
  n: number,
): { readonly position: number; readonly node: PlanNode } | undefined {
  const accumulation = work.at(n);
  if (!accumulation || !isAccumulation(accumulation.launch.kernel)) return undefined;
  const [added, sum] = accumulation.launch.bindings as [Binding<Storage>, Binding<Storage>];
  const { writes, reads } = work.usesOf(added.buffer);
  const [producer] = writes;
  if (!producer || producer.node >= n || writes.length > 1) return undefined;
  const { node: position, binding: result } = producer;
  const node = work.nodeOf(producer);
  const stored = node.launch.bindings[result] as Binding<Storage>;
  const rounding = roundingBetween(stored, [added]);
  if (!sameRange(stored, added) || rounding === "several") return undefined;
  if (work.isTouchedBetween(sum, position, n, "any")) return undefined;
  const isWanted = reads.length > 1 || added.buffer.isResident || work.kept.has(added.buffer);
  const launch = addingTo(sum, node.launch, result, { isWanted, ...(rounding && { rounding }) });
  if (!launch || launch.bindings.length > maxBindings || hasConflict(launch)) return undefined;
  const recorded = [...node.recorded, ...accumulation.recorded];
  return { position, node: { ...node, launch, recorded } };
}

/** The launch changed to add a result to a sum, and to store the result only where it is read; undefined where it cannot. */
function addingTo(
  sum: Binding<Storage>,
  launch: Launch<Storage>,
  result: number,
  { isWanted, rounding }: { readonly isWanted: boolean; readonly rounding?: HalfDType },
): Launch<Storage> | undefined {
  const { kernel } = launch;
  if (!canAccumulate(kernel, result) || !accepts(kernel.bindings[result], sum.dtype))
    return undefined;
  if (!isWanted) return accumulating({ ...launch, kernel }, result, sum, rounding);
  if (!canStoreTwice(kernel)) return undefined;
  const twice = storingTwice({ ...launch, kernel }, result, sum);
  const twin = twice.bindings.length - 1;
  const { kernel: twinned } = twice;
  if (!canAccumulate(twinned, twin)) return undefined;
  return accumulating({ ...twice, kernel: twinned }, twin, sum, rounding);
}
