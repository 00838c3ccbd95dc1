import type { Binding } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import {
  type ElementwiseLaunch,
  type EpilogueKernel,
  epilogueFits,
  isElementwise,
  takesEpilogue,
  withEpilogue,
  wovenName,
} from "@halfstep/kernels/planner";
import { accepts, hasConflict, maxBindings } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import { type Pass, type PlanNode, roundingBetween } from "../graph.js";
import { LiveBytes } from "./live-bytes.js";
import { Rewriting } from "./rewriting.js";

/**
 * Weaves an elementwise launch into the store of the launch whose result it alone reads: bias, activation, residual, scale. The
 * intermediate result is not written, but rounds as if it were. Where two results meet in one elementwise launch, that of a product
 * (of matrices, or a convolution) comes first. Moving a launch to its reader's place never makes the step's memory grow.
 */
export const fuseEpilogues: Pass = (graph) => {
  const work = new Rewriting(graph);
  const live = new LiveBytes(graph);
  for (const isProduct of [true, false])
    for (let n = work.length - 1; n >= 0; n--) {
      const producer = work.at(n);
      const kernel = producer?.launch.kernel;
      if (!producer || !kernel || !takesEpilogue(kernel)) continue;
      if (!!kernel.operations !== isProduct) continue;
      const position = work.onlyReaderOf(n);
      if (position === undefined) continue;
      const more = moreHeld(work, n, position);
      if (!live.hasRoom(more, n, position)) continue;
      const node = weave(producer, kernel, work.at(position) as PlanNode);
      if (!node || hasConflict(node.launch)) continue;
      live.add(more, n, position);
      work.remove(n);
      work.replace(position, node);
    }
  return work.graph();
};

/**
 * The additional memory in between if a node moves to the place of its only reader: operands that it is the last to read stay
 * allocated until then, instead of its result.
 */
function moreHeld(work: Rewriting, position: number, reader: number): number {
  const { bindings } = (work.at(position) as PlanNode).launch;
  const waiting = new Set<Storage>();
  for (const { buffer } of bindings.slice(0, -1)) {
    const { writes, reads } = work.usesOf(buffer);
    const isUsedLater = [...writes, ...reads].some(({ node }) => node >= reader);
    if (!isUsedLater && !buffer.isResident && !work.kept.has(buffer)) waiting.add(buffer);
  }
  let bytes = -(bindings.at(-1) as Binding<Storage>).buffer.byteLength;
  for (const { byteLength } of waiting) bytes += byteLength;
  return bytes;
}

function weave(producer: PlanNode, kernel: EpilogueKernel, reader: PlanNode): PlanNode | undefined {
  const { launch } = reader;
  if (!isElementwise(launch.kernel) || reader.isBackward !== producer.isBackward) return undefined;
  const elementwise = launch as ElementwiseLaunch<Storage>;
  const { inputs } = launch.kernel.elementwise;
  const result = producer.launch.bindings.at(-1) as Binding<Storage>;
  const results = [...inputs.keys()].filter((i) => launch.bindings[i]?.buffer === result.buffer);
  const out = launch.bindings.at(-1) as Binding<Storage>;
  if (
    !epilogueFits({ ...producer.launch, kernel }, elementwise, { results }) ||
    ![result, out].every(({ dtype }) => isFloating(dtype)) ||
    !accepts(kernel.bindings.at(-1), out.dtype)
  )
    return undefined;
  const rounding = roundingBetween(
    result,
    results.map((i) => launch.bindings[i] as Binding<Storage>),
  );
  if (rounding === "several") return undefined;
  const fused = withEpilogue({ ...producer.launch, kernel }, elementwise, {
    results,
    ...(rounding && { rounding }),
  });
  if (fused.bindings.length > maxBindings) return undefined;
  const wovenSources = [...reader.sources].map(
    ([name, source]) => [wovenName(name), source] as const,
  );
  return {
    launch: fused,
    sources: new Map([...producer.sources, ...wovenSources]),
    recorded: [...producer.recorded, ...reader.recorded],
    isBackward: reader.isBackward,
  };
}
