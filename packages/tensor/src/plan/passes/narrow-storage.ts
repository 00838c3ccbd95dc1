import type { Binding, HalfDType } from "@halfstep/device";
import { accepts } from "../../record/bindings.js";
import { Storage } from "../../record/storage.js";
import { halfOf, type Pass, type PlanNode, roundings, withBinding } from "../graph.js";
import { Rewriting, type Uses } from "./rewriting.js";

/**
 * Stores a value in 16 bits that was rounded to 16 bits and stored as float32 because its reader required float32. Widening is
 * exact, and every kernel widens while it loads.
 */
export const narrowStorage: Pass = (graph) => {
  const work = new Rewriting(graph);
  const seen = new Set<Storage>();
  for (let n = 0; n < work.length; n++)
    for (const { buffer, rounding } of work.at(n)?.launch.bindings ?? []) {
      if (!rounding || buffer.isResident || seen.has(buffer)) continue;
      seen.add(buffer);
      if (!work.kept.has(buffer) && !buffer.hostData) narrow(work, buffer, rounding);
    }
  return work.graph();
};

function narrow(work: Rewriting, buffer: Storage, format: HalfDType): void {
  const uses = work.usesOf(buffer);
  if (!isRoundedTo(format, work, uses)) return;
  const bytes = Math.ceil(buffer.byteLength / 32) * 16;
  const narrowed = new Storage(buffer.owner, bytes);
  const positions = new Set([...uses.writes, ...uses.reads].map(({ node }) => node));
  for (const position of positions) {
    let node = work.at(position) as PlanNode;
    for (const [b, binding] of node.launch.bindings.entries())
      if (binding.buffer === buffer) node = withBinding(node, b, moved(binding, narrowed, format));
    work.replace(position, node);
  }
}

/** Whether all launches that write a storage round to a format first, and all that read it can load that format. */
function isRoundedTo(format: HalfDType, work: Rewriting, { writes, reads }: Uses): boolean {
  const fits = ({ node, binding }: Uses["reads"][number], isWrite: boolean): boolean => {
    const { kernel, bindings } = (work.at(node) as PlanNode).launch;
    const { dtype, offset, rounding } = bindings[binding] as Binding<Storage>;
    const parameter = kernel.bindings[binding];
    if (dtype !== "float32" || offset !== 0 || !accepts(parameter, format)) return false;
    return isWrite
      ? parameter?.access === "write" && rounding === format
      : parameter?.access === "read";
  };
  return (
    writes.length > 0 &&
    writes.every((use) => fits(use, true)) &&
    reads.every((use) => fits(use, false))
  );
}

function moved(
  { length, rounding }: Binding<Storage>,
  buffer: Storage,
  format: HalfDType,
): Binding<Storage> {
  const binding = { buffer, offset: 0, length, dtype: format };
  const [, further] = roundings(halfOf(format), rounding);
  return further ? { ...binding, rounding: further } : binding;
}
