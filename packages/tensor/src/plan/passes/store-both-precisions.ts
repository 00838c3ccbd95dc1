import type { Binding, HalfDType } from "@halfstep/device";
import { canStoreTwice, storingTwice, type TwinnableKernel } from "@halfstep/kernels/planner";
import { accepts, hasConflict, maxBindings } from "../../record/bindings.js";
import { Storage } from "../../record/storage.js";
import { type Pass, type PlanNode, withBinding } from "../graph.js";
import { Rewriting, type Use } from "./rewriting.js";

/**
 * Stores a float32 value a second time, in 16 bits, where a product loads it rounded to them and other launches load it in float32. A
 * product loads each number of a factor once for every few columns of its result and would round it as often; its producer rounds it once.
 * The backward pass then keeps the 16-bit value. This pass runs after the fusion of elementwise launches: before, one of them may still
 * become a part of a product's store.
 */
export const storeBothPrecisions: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    for (const b of (work.at(n) as PlanNode).launch.bindings.keys()) {
      const { kernel } = (work.at(n) as PlanNode).launch;
      if (canStoreTwice(kernel)) storeTwice(work, n, b, kernel);
    }
  }
  return work.graph();
};

function storeTwice(
  work: Rewriting,
  producer: number,
  result: number,
  kernel: TwinnableKernel,
): void {
  const node = work.at(producer) as PlanNode;
  const { bindings } = node.launch;
  const stored = bindings[result] as Binding<Storage>;
  const { buffer, dtype, rounding, length } = stored;
  if (kernel.bindings[result]?.access !== "write") return;
  if (dtype !== "float32" || rounding || bindings.length >= maxBindings) return;
  const { writes, reads } = work.usesOf(buffer);
  if (buffer.isResident || work.kept.has(buffer) || writes.length > 1) return;
  const loads = roundingLoads(work, stored, node.isBackward, reads);
  const format = loads.find(({ isProduct }) => isProduct)?.format;
  if (!format || !accepts(kernel.bindings[result], format)) return;

  const memory = new Storage(buffer.owner, Math.ceil(length / 8) * 16);
  const twin: Binding<Storage> = { buffer: memory, offset: 0, length, dtype: format };
  const launch = storingTwice({ ...node.launch, kernel }, result, twin);
  if (hasConflict(launch)) return;
  const moved = loads.filter((load) => load.format === format);
  for (const { use } of moved)
    work.replace(use.node, withBinding(work.nodeOf(use), use.binding, twin));
  const isWanted = moved.length < reads.length;
  work.replace(producer, isWanted ? { ...node, launch } : withBinding(node, result, twin));
}

/** A load that rounds. */
interface RoundingLoad {
  readonly use: Use;
  readonly format: HalfDType;
  readonly isProduct: boolean;
}

/**
 * The loads of a float32 value that round it and could load its 16-bit twin. Where the backward pass reads the float32 value anyway, only
 * loads of the forward pass count, so that it does not keep both.
 */
function roundingLoads(
  work: Rewriting,
  { offset, length }: Binding<Storage>,
  isBackward: boolean,
  reads: readonly Use[],
): readonly RoundingLoad[] {
  const loads = reads.map((use) => {
    const { launch, ...node } = work.nodeOf(use);
    const binding = launch.bindings[use.binding] as Binding<Storage>;
    const isWhole = binding.offset === offset && binding.length === length;
    const fits =
      isWhole && accepts(launch.kernel.bindings[use.binding], binding.rounding ?? "float32");
    const format = fits ? binding.rounding : undefined;
    return { use, format, isProduct: !!launch.kernel.operations, isLate: node.isBackward };
  });
  const isKept = !isBackward && loads.some(({ isLate, format }) => isLate && !format);
  return loads.filter(
    (load): load is typeof load & RoundingLoad => !!load.format && !(isKept && load.isLate),
  );
}
