import type { Binding } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import {
  canObserveStores,
  gradientFlag,
  isFiniteCheck,
  observingStores,
  storesOnce,
} from "@halfstep/kernels/planner";
import { hasConflict, maxBindings, overlaps } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import type { Pass, PlanNode } from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Makes launches that store gradients and losses check them for infinities and NaN, instead of a launch that loads all of them again.
 * All stores of a checked range must support it. Only for CPU adapters, whose compilers do not assume finite numbers.
 */
export const fuseFiniteChecks: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const checking = storesChecked(work, n);
    if (!checking) continue;
    work.remove(n);
    for (const [position, node] of checking) work.replace(position, node);
  }
  return work.graph();
};

/** One store into a checked range. */
interface Store {
  readonly node: number;
  readonly result: number;
  readonly start: number;
  readonly end: number;
}

/** The changed nodes, if stores check the range instead of the launch at a position; undefined where that launch stays. */
function storesChecked(work: Rewriting, n: number): ReadonlyMap<number, PlanNode> | undefined {
  const search = work.at(n);
  if (!search || !isFiniteCheck(search.launch.kernel)) return undefined;
  const [searched, foundInf] = search.launch.bindings as [Binding<Storage>, Binding<Storage>];
  const stores = storesOf(work, searched, n);
  if (searched.dtype !== "float32" || !covers(stores, searched)) return undefined;
  const changed = new Map<number, PlanNode>();
  const positions = new Set(stores.map(({ node }) => node));
  for (const position of positions) {
    const node = work.at(position) as PlanNode;
    const results = stores.filter((store) => store.node === position).map(({ result }) => result);
    const { launch } = node;
    const { kernel, bindings } = launch;
    const isFit = results.every(
      (b) =>
        (kernel.bindings[b]?.access === "write" || storesOnce(kernel, b)) &&
        bindings[b]?.dtype === "float32",
    );
    if (!isFit || !canObserveStores(kernel) || bindings.length >= maxBindings) return undefined;
    const observation = { observer: gradientFlag, words: foundInf };
    const checked = observingStores({ ...launch, kernel }, results, observation);
    if (hasConflict(checked)) return undefined;
    const recorded = [...node.recorded, ...search.recorded];
    changed.set(position, { ...node, launch: checked, recorded });
  }
  return work.isTouchedBetween(foundInf, Math.min(...positions), n, "any") ? undefined : changed;
}

/** The last store to each place of a range before a position, in the order of addresses. */
function storesOf(work: Rewriting, range: Binding<Storage>, before: number): readonly Store[] {
  const stores = new Map<string, Store>();
  for (const use of work.usesOf(range.buffer).writes) {
    const binding = work.nodeOf(use).launch.bindings[use.binding] as Binding<Storage>;
    if (use.node >= before || !overlaps(range, binding)) continue;
    const { offset, length, dtype } = binding;
    const end = offset + bytesFor(dtype, length);
    const place = `${offset} ${end}`;
    if ((stores.get(place)?.node ?? -1) > use.node) continue;
    stores.set(place, { node: use.node, result: use.binding, start: offset, end });
  }
  return [...stores.values()].sort((a, b) => a.start - b.start);
}

/** Whether stores fill a range without overlap, except for the zeros between its parts. */
function covers(stores: readonly Store[], range: Binding<Storage>): boolean {
  const { buffer, offset, length, dtype } = range;
  const { partStep = 1 } = buffer;
  let next = offset;
  for (const { start, end } of stores) {
    if (start !== Math.ceil(next / partStep) * partStep) return false;
    next = end;
  }
  return next === offset + bytesFor(dtype, length);
}
