import type { Binding, Launch } from "@halfstep/device";
import {
  type ElementwiseLaunch,
  fuseElementwiseLaunches,
  isElementwise,
} from "@halfstep/kernels/planner";
import { hasConflict, maxBindings } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import { type Pass, type PlanNode, roundingBetween, type ScalarSource } from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Merges an elementwise launch into the elementwise launch that alone reads its result. It runs after `rematerializeSums`: sums
 * that draw random numbers would draw them again.
 */
export const fuseElementwise: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const first = work.at(n);
    if (!first || !isElementwise(first.launch.kernel)) continue;
    const position = work.onlyReaderOf(n);
    if (position === undefined) continue;
    const node = merged(first, work.at(position) as PlanNode);
    if (!node) continue;
    work.remove(n);
    work.replace(position, node);
  }
  return work.graph();
};

/** The launch that replaces a producer and its only reader; undefined where the two cannot be fused. */
function merged(first: PlanNode, second: PlanNode): PlanNode | undefined {
  if (!isElementwiseLaunch(first.launch) || !isElementwiseLaunch(second.launch)) return undefined;
  const result = first.launch.bindings.at(-1) as Binding<Storage>;
  const inputs = second.launch.bindings.slice(0, second.launch.kernel.elementwise.inputs.length);
  const rounding = roundingBetween(
    result,
    inputs.filter(({ buffer }) => buffer === result.buffer),
  );
  if (rounding === "several") return undefined;
  const fused = fuseElementwiseLaunches(first.launch, second.launch, rounding);
  if (!fused || fused.launch.bindings.length > maxBindings || hasConflict(fused.launch))
    return undefined;
  const sources = new Map<string, ScalarSource>();
  for (const [name, { from, name: own }] of fused.scalarOrigins) {
    const source = (from === "first" ? first : second).sources.get(own);
    if (source) sources.set(name, source);
  }
  return {
    launch: fused.launch,
    sources,
    recorded: [...first.recorded, ...second.recorded],
    isBackward: second.isBackward,
  };
}

const isElementwiseLaunch = (launch: Launch<Storage>): launch is ElementwiseLaunch<Storage> =>
  isElementwise(launch.kernel);
