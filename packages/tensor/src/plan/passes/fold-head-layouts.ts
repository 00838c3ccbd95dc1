import { type Binding, bytesPerElement, type Launch } from "@halfstep/device";
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
 * Makes attention find its heads where they were computed, and leave them where they are wanted. Models permute [batch, tokens,
 * heads, size], or parts of [batch, tokens, 3 · heads · size], to [batch, heads, tokens, size] before attention, and back after
 * it; kernels that find each head by its layout need none of these copies.
 */
export const foldHeadLayouts: Pass = (graph) => {
  const work = new Rewriting(graph);
  // The last of several copies first: what it read becomes what attention reads. Slices of one tensor wait for the second round,
  // until attention reads all of them.
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

/** A copy by strides of numbers that it leaves as they are, and what it moves. */
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

/** The nodes that change where all readers of a copy read what was copied; undefined where one cannot, or it is not worth it. */
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

/** Memory does not grow: what is copied is no larger than its copy, or is there as long as the copy would be. */
function isWorthReading(work: Rewriting, n: number, { from, to }: Copied): boolean {
  if (from.buffer.isResident || from.buffer.byteLength <= to.buffer.byteLength) return true;
  return lastUse(work, to.buffer, n) <= lastUse(work, from.buffer, n);
}

/** The last node that uses a storage, besides one. */
function lastUse(work: Rewriting, storage: Storage, besides: number): number {
  const { writes, reads } = work.usesOf(storage);
  return Math.max(...[...writes, ...reads].map(({ node }) => (node === besides ? -1 : node)));
}

/** The same, or all copies of one storage that could be done without take as much memory as it does. */
function isWorthTogether(work: Rewriting, n: number, copy: Copied): boolean {
  if (isWorthReading(work, n, copy)) return true;
  let bytes = 0;
  for (const { node } of work.usesOf(copy.from.buffer).reads) {
    const other = copiedBy((work.at(node) as PlanNode).launch);
    if (other && readersMoved(work, node, other)) bytes += other.to.buffer.byteLength;
  }
  return bytes >= copy.from.buffer.byteLength;
}

/** The nodes that change where those who compute what is copied, or put together, store it in its place; undefined where one cannot. */
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

/** Adds to `moved` all who use what is copied; false where one of them cannot use the place that it is copied to. */
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
  // Elements that nobody computes would be lost with the copy.
  const written = writes.reduce((sum, use) => sum + storedBy(work.nodeOf(use), use), 0);
  if (written !== from.length) return false;
  // What keeps a part of its binding is among both.
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
 * The node with what it binds at `from` bound at `to` instead: a walk leads from elements there to elements here. Undefined where
 * its kernel cannot find the heads then.
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
  const start = (old.offset - from.offset) / bytesPerElement(from.dtype);
  const { buffer, offset, length, dtype } = to;
  const bound = { buffer, offset, length, dtype, ...(old.rounding && { rounding: old.rounding }) };
  for (const heads of headCounts(first, walk)) {
    const places = new Map<string, HeadPlace<Storage>>();
    for (const operand of operands) {
      const layout = layoutThrough(walk, start, operand, heads);
      if (layout) places.set(operand.name, { binding: bound, layout });
    }
    const moved = places.size === operands.length ? withHeads(launch, places, heads) : undefined;
    if (moved) return { ...node, launch: moved };
  }
  return undefined;
}

/** Whether a binding has elements of another only, and has them as they are stored there. */
function isWithin(inner: Binding<Storage>, outer: Binding<Storage>): boolean {
  const start = (inner.offset - outer.offset) / bytesPerElement(outer.dtype);
  return inner.dtype === outer.dtype && start >= 0 && start + inner.length <= outer.length;
}

/** Numbers of heads a batch with which an operand may lie where a walk leads. */
function headCounts({ entries, heads, layout }: Heads, walk: Walk): readonly number[] {
  const step = heads === 1 ? layout.batch : layout.head;
  const turns = turnsOf(walk, step).filter((turn) => turn >= 1 && entries % turn === 0);
  return [...new Set([heads, ...turns])];
}

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
  return size === 1 || element === 1 ? { start: found.start, batch, head, token } : undefined;
}
