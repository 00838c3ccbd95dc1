import type { Binding, HalfDType } from "@halfstep/device";
import { bytesFor, isFloat8 } from "@halfstep/formats/dtypes";
import { identity } from "@halfstep/kernels";
import { concatenatedStarts, contiguousStart, isElementwise } from "@halfstep/kernels/planner";
import { accepts, hasConflict } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import {
  halfOf,
  isRead,
  isWrite,
  type Pass,
  type PlanNode,
  roundings,
  withBinding,
} from "../graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Folds casts and copies into their neighbours, so that they need no launch: the producer stores what the cast would have stored,
 * or the consumers load through the cast. A folded cast rounds as before. Consumers of a contiguous slice read it from the whole
 * tensor, and producers of the parts of a concatenation store into its result.
 */
export const foldCasts: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const moved = folded(work, n);
    if (!moved) continue;
    work.remove(n);
    for (const [position, changed] of moved) work.replace(position, changed);
  }
  return work.graph();
};

type Changes = ReadonlyMap<number, PlanNode>;

/** The changed nodes, if the node at a position is folded into its neighbours; undefined where it stays. */
function folded(work: Rewriting, n: number): Changes | undefined {
  const node = work.at(n);
  if (!node) return undefined;
  const starts = concatenatedStarts(node.launch);
  if (starts) return movePartsToProducers(work, n, starts);
  const [from, to] = copied(node) ?? [];
  return from && to && (moveToProducer(work, n, from, to) ?? moveToConsumers(work, n, from, to));
}

/** The operands of a launch that only copies; undefined for other launches, and where the memory cannot be bound. */
function copied(node: PlanNode): readonly Binding<Storage>[] | undefined {
  const start = isCopy(node) ? 0 : contiguousStart(node.launch);
  const [input, out] = node.launch.bindings as [Binding<Storage>, Binding<Storage>];
  return start === undefined ? undefined : [part(input, start, out.length), out];
}

/** Elements of a binding that lie one after the other. */
const part = (whole: Binding<Storage>, start: number, length: number): Binding<Storage> => ({
  ...whole,
  offset: whole.offset + bytesFor(whole.dtype, start),
  length,
});

/** The alignment of the offset of every binding, in bytes. */
const alignment = 256;

/** The changed nodes, if the producers of the parts of a concatenation store them in its result; undefined unless all can. */
function movePartsToProducers(
  work: Rewriting,
  position: number,
  starts: readonly number[],
): Changes | undefined {
  const { bindings } = (work.at(position) as PlanNode).launch;
  const parts = bindings.slice(0, -1);
  const out = bindings.at(-1) as Binding<Storage>;
  if (new Set(parts.map(({ buffer }) => buffer)).size < parts.length) return undefined;
  const moved = new Map<number, PlanNode>();
  for (const [p, from] of parts.entries()) {
    const changes = moveToProducer(
      work,
      position,
      from,
      part(out, starts[p] as number, from.length),
      moved,
    );
    if (!changes) return undefined;
    for (const [changed, node] of changes) moved.set(changed, node);
  }
  return moved;
}

/** True for a launch that only copies, and perhaps casts. */
export function isCopy({ launch: { kernel } }: PlanNode): boolean {
  if (!isElementwise(kernel)) return false;
  const { inputs, steps } = kernel.elementwise;
  return steps.length === 1 && steps[0]?.expression === identity && inputs[0] === "same";
}

function rebound(
  binding: Binding<Storage>,
  to: Binding<Storage>,
  rounding: HalfDType | undefined,
): Binding<Storage> {
  const { buffer, offset, dtype } = to;
  const moved = { buffer, offset, length: binding.length, dtype };
  return rounding && rounding !== dtype ? { ...moved, rounding } : moved;
}

/** The changed nodes, if the producer of a value stores it as the cast would; undefined where it cannot. */
function moveToProducer(
  work: Rewriting,
  cast: number,
  from: Binding<Storage>,
  to: Binding<Storage>,
  before: Changes = new Map(),
): Changes | undefined {
  const { writes, reads } = work.usesOf(from.buffer);
  const [producer] = writes;
  if (!producer || writes.length > 1 || to.offset % alignment !== 0) return undefined;
  if (from.buffer.isResident || work.kept.has(from.buffer)) return undefined;
  const node = before.get(producer.node) ?? work.nodeOf(producer);
  const target = node.launch.bindings[producer.binding] as Binding<Storage>;
  const parameter = node.launch.kernel.bindings[producer.binding];
  if (parameter?.access !== "write" || !coversSame(target, from)) return undefined;
  if (!accepts(parameter, to.dtype) || isRoundedTo8Bits(from, to)) return undefined;
  const chain = roundings(target.rounding, halfOf(target.dtype), from.rounding, to.rounding);
  if (chain.at(-1) === to.dtype) chain.pop();
  if (chain.length > 1) return undefined;
  if (work.isTouchedBetween(to, producer.node, cast, "any")) return undefined;

  const moved = new Map<number, PlanNode>();
  moved.set(producer.node, withBinding(node, producer.binding, rebound(target, to, chain[0])));
  // Other readers of the value read it at its new place, which has the same elements if the copy casts nothing.
  for (const use of reads) {
    const { node: reader, binding } = use;
    if (reader === cast) continue;
    const other = moved.get(reader) ?? before.get(reader) ?? work.nodeOf(use);
    const read = other.launch.bindings[binding] as Binding<Storage>;
    const isPlain = to.dtype === from.dtype && !from.rounding && !to.rounding;
    if (!isPlain || other.part || !coversSame(read, from)) return undefined;
    if (work.isTouchedBetween(to, cast, reader, "write")) return undefined;
    moved.set(reader, withBinding(other, binding, rebound(read, to, read.rounding)));
  }
  for (const { launch } of moved.values()) if (hasConflict(launch)) return undefined;
  return moved;
}

/** Whether a cast reads a value that was rounded to 8 bits by its storage: only a binding stored in 8 bits can express that. */
const isRoundedTo8Bits = (of: Binding<Storage>, moved: Binding<Storage>): boolean =>
  isFloat8(of.dtype) && of.dtype !== moved.dtype;

const coversSame = (a: Binding<Storage>, b: Binding<Storage>): boolean =>
  a.offset === b.offset && a.length === b.length && a.dtype === b.dtype;

/** The changed nodes, if all readers of a cast's result load through the cast; undefined where one cannot. */
function moveToConsumers(
  work: Rewriting,
  cast: number,
  from: Binding<Storage>,
  to: Binding<Storage>,
): Changes | undefined {
  const { writes, reads } = work.usesOf(to.buffer);
  if (from.offset % alignment !== 0) return undefined;
  if (writes.length > 1 || to.buffer.isResident || work.kept.has(to.buffer)) return undefined;
  if (isRoundedTo8Bits(to, from)) return undefined;
  const moved = new Map<number, PlanNode>();
  for (const use of reads) {
    const { node: reader, binding } = use;
    const node = moved.get(reader) ?? work.nodeOf(use);
    const read = node.launch.bindings[binding] as Binding<Storage>;
    const parameter = node.launch.kernel.bindings[binding];
    if (read.offset !== to.offset || read.length !== to.length || isWrite(node, binding))
      return undefined;
    if (!isRead(node, binding) || !accepts(parameter, from.dtype)) return undefined;
    if (work.isTouchedBetween(from, cast, reader, "write")) return undefined;
    const chain = roundings(from.rounding, to.rounding, halfOf(to.dtype), read.rounding);
    // Values that the storage has already rounded are not rounded again; float16 and bfloat16 represent 8-bit values exactly.
    if (chain[0] === from.dtype || isFloat8(from.dtype)) chain.shift();
    if (chain.length > 1) return undefined;
    const changed = withBinding(node, binding, rebound(read, from, chain[0]));
    if (hasConflict(changed.launch)) return undefined;
    moved.set(reader, changed);
  }
  return moved;
}
