import type { Binding, Launch } from "@halfstep/device";
import { elementsIn } from "@halfstep/formats/dtypes";
import {
  concatenatedWalks,
  copiedWalk,
  type HeadLayout,
  type HeadPlace,
  type Heads,
  headsOf,
  inverseWalk,
  rangesThrough,
  turnsOf,
  type Walk,
  withHeadCount,
  withHeads,
} from "@halfstep/kernels/planner";
import { hasConflict } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import type { Pass, PlanNode } from "../graph.js";
import { Rewriting, type Use } from "./rewriting.js";

/**
 * Makes attention read heads in the layout of the projections and write them in the layout that its reader needs. Models permute
 * [batch, tokens, heads, size], or parts of [batch, tokens, 3 · heads · size], to [batch, heads, tokens, size] before attention, and
 * back after it; kernels that address heads by a layout need none of these copies.
 */
export const foldHeadLayouts: Pass = (graph) => {
  const work = new Rewriting(graph);
  // The last of several copies comes first: attention then reads the source of that copy. Slices of one tensor wait for the second
  // round, until attention reads all of them.
  for (const isWorth of [isWorthReading, isWorthTogether])
    for (let n = work.length - 1; n >= 0; n--) apply(work, n, readBefore(work, n, isWorth));
  for (let n = 0; n < work.length; n++) apply(work, n, storedAfter(work, n));
  return work.graph();
};

type Changes = ReadonlyMap<number, PlanNode>;

function apply(work: Rewriting, n: number, changes: Changes | undefined): void {
  if (!changes) return;
  work.remove(n);
  for (const [position, changed] of changes) work.replace(position, changed);
}

/** A strided copy without a cast, with its source and its result. */
interface Copied {
  readonly from: Binding<Storage>;
  readonly to: Binding<Storage>;
  readonly walk: Walk;
}

function copiedBy(launch: Launch<Storage>): Copied | undefined {
  const walk = copiedWalk(launch);
  const [from, to] = launch.bindings as [Binding<Storage>, Binding<Storage>];
  return walk && isUnchanged(from, to) ? { from, to, walk } : undefined;
}

const isUnchanged = (from: Binding<Storage>, to: Binding<Storage>): boolean =>
  from.dtype === to.dtype && !from.rounding && !to.rounding && to.length > 0;

/** The changed nodes, if all readers of a copy read its source; undefined where one cannot, or where the change does not pay. */
function readBefore(
  work: Rewriting,
  n: number,
  isWorth: (work: Rewriting, n: number, copy: Copied) => boolean,
): Changes | undefined {
  const launch = work.at(n)?.launch;
  const copy = launch && copiedBy(launch);
  return copy && isWorth(work, n, copy) ? readersMoved(work, n, copy) : undefined;
}

function readersMoved(work: Rewriting, n: number, { from, to, walk }: Copied): Changes | undefined {
  const { writes, reads } = work.usesOf(to.buffer);
  if (writes.length > 1 || reads.length === 0) return undefined;
  if (to.buffer.isResident || work.kept.has(to.buffer)) return undefined;
  const moved = new Map<number, PlanNode>();
  for (const use of reads) {
    if (work.isTouchedBetween(from, n, use.node, "write")) return undefined;
    const changed = movedHeads(moved.get(use.node) ?? work.nodeOf(use), use, to, from, walk);
    if (!changed || hasConflict(changed.launch)) return undefined;
    moved.set(use.node, changed);
  }
  return moved;
}

/** Whether memory does not grow: the source is no larger than its copy, or stays allocated as long as the copy would. */
function isWorthReading(work: Rewriting, n: number, { from, to }: Copied): boolean {
  if (from.buffer.isResident || from.buffer.byteLength <= to.buffer.byteLength) return true;
  return lastUse(work, to.buffer, n) <= lastUse(work, from.buffer, n);
}

/** The last node that uses a storage, except one. */
function lastUse(work: Rewriting, storage: Storage, besides: number): number {
  const { writes, reads } = work.usesOf(storage);
  return Math.max(...[...writes, ...reads].map(({ node }) => (node === besides ? -1 : node)));
}

/**
 * Whether {@link isWorthReading} holds, or all copies of one storage that can be removed together take as much memory as the storage.
 */
function isWorthTogether(work: Rewriting, n: number, copy: Copied): boolean {
  if (isWorthReading(work, n, copy)) return true;
  let bytes = 0;
  for (const { node } of work.usesOf(copy.from.buffer).reads) {
    const other = copiedBy((work.at(node) as PlanNode).launch);
    if (other && readersMoved(work, node, other)) bytes += other.to.buffer.byteLength;
  }
  return bytes >= copy.from.buffer.byteLength;
}

/**
 * The changed nodes, if the launches that compute the source of a copy or concatenation store into its result; undefined where one
 * cannot.
 */
function storedAfter(work: Rewriting, n: number): Changes | undefined {
  const launch = work.at(n)?.launch;
  if (!launch) return undefined;
  const to = launch.bindings.at(-1) as Binding<Storage>;
  const parts = launch.bindings.slice(0, -1);
  const copy = copiedWalk(launch);
  const walks = copy ? [inverseWalk(copy)] : concatenatedWalks(launch);
  if (!walks || !parts.every((part) => isUnchanged(part, to))) return undefined;
  if (new Set(parts.map(({ buffer }) => buffer)).size < parts.length) return undefined;
  const moved = new Map<number, PlanNode>();
  for (const [p, from] of parts.entries()) {
    const walk = walks[p];
    if (!walk || !moveStores(work, n, { from, to, walk }, moved)) return undefined;
  }
  for (const { launch: changed } of moved.values()) if (hasConflict(changed)) return undefined;
  return moved;
}

/** Adds the changed users of the source to `moved`; false where one of them cannot use the place of the copy. */
function moveStores(
  work: Rewriting,
  n: number,
  { from, to, walk }: Copied,
  moved: Map<number, PlanNode>,
): boolean {
  const { writes, reads } = work.usesOf(from.buffer);
  if (from.buffer.isResident || work.kept.has(from.buffer)) return false;
  if (writes.length === 0 || writes.some(({ node }) => node >= n)) return false;
  const first = Math.min(...writes.map(({ node }) => node));
  if (work.isTouchedBetween(to, first, n, "any")) return false;
  // Without the copy, elements that no launch computes would be lost.
  const written = writes.reduce((sum, use) => sum + storedBy(work.nodeOf(use), use), 0);
  if (written !== from.length) return false;
  // A launch that keeps a part of its binding is among both.
  const uses = new Map([...writes, ...reads].map((use) => [`${use.node},${use.binding}`, use]));
  for (const use of uses.values()) {
    const { node: position } = use;
    if (position === n) continue;
    if (position > n && work.isTouchedBetween(to, n, position, "write")) return false;
    const node = moved.get(position) ?? work.nodeOf(use);
    const changed = movedHeads(node, use, from, to, walk);
    if (!changed) return false;
    moved.set(position, changed);
  }
  return true;
}

/** How many elements a node stores in one of its bindings. */
const storedBy = ({ launch }: PlanNode, { binding }: Use): number =>
  headsOf(launch)
    .filter((each) => each.isResult && each.binding === binding)
    .reduce((sum, { entries, tokens, size }) => sum + entries * tokens * size, 0);

/**
 * The node with its bindings at `from` moved to `to`: a walk maps elements of `to` to elements of `from`. Undefined where its kernel
 * cannot address the heads there.
 */
function movedHeads(
  node: PlanNode,
  { binding }: Use,
  from: Binding<Storage>,
  to: Binding<Storage>,
  walk: Walk,
): PlanNode | undefined {
  const { launch } = node;
  const operands = headsOf(launch).filter((each) => each.binding === binding);
  const old = launch.bindings[binding] as Binding<Storage>;
  const [first] = operands;
  if (!first || !isWithin(old, from)) return undefined;
  const start = elementsIn(from.dtype, old.offset - from.offset);
  const { buffer, offset, length, dtype } = to;
  const bound = { buffer, offset, length, dtype, ...(old.rounding && { rounding: old.rounding }) };
  for (const count of headCounts(first, walk)) {
    const heads = count * first.group;
    const places = new Map<string, HeadPlace<Storage>>();
    for (const operand of operands) {
      const layout = layoutThrough(walk, start, operand, heads / operand.group);
      if (layout) places.set(operand.name, { binding: bound, layout });
    }
    const moved = places.size === operands.length ? withHeads(launch, places, heads) : undefined;
    if (moved) return { ...node, launch: moved };
  }
  return undefined;
}

/** Whether a binding lies within another one of the same dtype. */
function isWithin(inner: Binding<Storage>, outer: Binding<Storage>): boolean {
  const start = elementsIn(outer.dtype, inner.offset - outer.offset);
  return inner.dtype === outer.dtype && start >= 0 && start + inner.length <= outer.length;
}

/** Numbers of heads per batch element for which an operand may have the layout of a walk. */
function headCounts({ entries, heads, layout }: Heads, walk: Walk): readonly number[] {
  const step = heads === 1 ? layout.batch : layout.head;
  const turns = turnsOf(walk, step).filter((turn) => turn >= 1 && entries % turn === 0);
  return [...new Set([heads, ...turns])];
}

/** The layout of an operand's heads in the source of a copy; undefined where heads, tokens or batch elements lie there in reverse. */
function layoutThrough(
  walk: Walk,
  first: number,
  { layout: old, entries, heads: before, tokens, size }: Heads,
  heads: number,
): HeadLayout | undefined {
  const layout = withHeadCount(old, { entries, heads: before }, heads);
  const found =
    layout &&
    rangesThrough(walk, first + layout.start, [
      { count: entries / heads, stride: layout.batch },
      { count: heads, stride: layout.head },
      { count: tokens, stride: layout.token },
      { count: size, stride: 1 },
    ]);
  if (!found) return undefined;
  const [batch, head, token, element] = found.strides as [number, number, number, number];
  // Kernels address heads by unsigned distances.
  if (Math.min(batch, head, token) < 0) return undefined;
  return size === 1 || element === 1 ? { start: found.start, batch, head, token } : undefined;
}
