import type { Binding, Launch } from "@halfstep/device";
import { bytesFor, elementsIn } from "@halfstep/formats/dtypes";
import { isAccumulation } from "@halfstep/kernels/planner";
import { overlaps } from "../../record/bindings.js";
import {
  type Division,
  type HostOp,
  type HostPart,
  hostKernel,
  isHostOp,
  type RowStage,
  type RowsOfPart,
} from "../../record/host-op.js";
import { Storage } from "../../record/storage.js";
import { isWrite, type PlanGraph, type PlanNode } from "../graph.js";
import { isCopy } from "./fold-casts.js";
import { alignedEnd, type RowsApart, rowsApartOf } from "./keep-rows-apart.js";

/** A part of the first binding of a host op, and the position of the node that computes the last of it; −1 where none does. */
interface ReadyRange {
  readonly binding: Binding<Storage>;
  readonly ready: number;
  /** Present for a stage of a part to which the op adds rows. */
  readonly apart?: ApartStage;
}

interface ApartStage {
  readonly stage: RowStage;
  readonly rows: RowsApart;
}

/** A part of a host op at its place. */
interface PlacedPart {
  readonly node: PlanNode;
  readonly range: ReadyRange;
  readonly part: HostPart;
}

/**
 * Carries out host ops on elements in parts, each as soon as its elements are computed, so that the host works on them beside the rest of
 * the step. It is the only pass that divides or moves a host op. Ranges and their order are found in the recorded graph. All processes
 * that take part in an exchange then divide it alike, whatever hardware they plan for and whatever they search. Where a part gets ready
 * between launches depends on the plan, so parts come behind all ops that are not divided: functions are then called in one order by all
 * processes.
 *
 * @param recorded the graph before all passes, without the launches of searches.
 * @param divides false where each op is carried out whole, at its place.
 */
export function divideHostOps(graph: PlanGraph, recorded: PlanGraph, divides: boolean): PlanGraph {
  const ops = graph.nodes.filter(({ launch: { kernel } }) => isHostOp(kernel) && kernel.division);
  if (ops.length === 0) return graph;
  const placed = ops.flatMap((node) => {
    const position = positionOf(node, graph, recorded);
    return partsOf(node, recorded.nodes.slice(0, position), divides);
  });
  placed.sort((a, b) => a.range.ready - b.range.ready);
  const inserted = new Map<number, PlanNode[]>();
  const insert = (position: number, nodes: readonly PlanNode[]): void => {
    inserted.set(position, [...(inserted.get(position) ?? []), ...nodes]);
  };
  const replaced = new Set(ops);
  const results: { readonly node: PlanNode; readonly after: readonly PlanNode[] }[] = [];
  // A part comes after its range's last user, and after the parts before it in the order of calls.
  let earliest = 0;
  for (const { node, range, part } of placed) {
    const own = graph.nodes.indexOf(node);
    const earlier = graph.nodes.slice(0, own);
    const users = operandsOf(range).map((operand) => lastUser(earlier, operand));
    const computed = Math.max(...users, lastWholeOp(earlier)) + 1;
    earliest = Math.max(earliest, range.ready < 0 || !divides ? own : computed);
    const { before, op, after } = carried(node, range, part);
    insert(earliest, [...before, op]);
    results.push({ node, after });
  }
  for (const { node, after } of results) insert(firstUser(graph, node), after);
  const nodes: PlanNode[] = [];
  for (let n = 0; n <= graph.nodes.length; n++) {
    nodes.push(...(inserted.get(n) ?? []));
    const node = graph.nodes[n];
    if (node && !replaced.has(node)) nodes.push(node);
  }
  return { ...graph, nodes };
}

/** What is computed before a part is carried out. */
const operandsOf = ({ binding, apart }: ReadyRange): readonly Binding<Storage>[] =>
  apart?.stage === "rows" ? [apart.rows.index, apart.rows.rows] : [binding];

const rowsOf = ({ stage, rows: { index, rows } }: ApartStage): RowsOfPart => ({
  stage,
  width: rows.length / index.length,
});

/** The position in the recorded graph of the host op that is as many host ops behind the first. */
function positionOf(node: PlanNode, graph: PlanGraph, recorded: PlanGraph): number {
  const number = graph.nodes.filter(({ part }) => part).indexOf(node);
  return [...recorded.nodes.keys()].filter((n) => recorded.nodes[n]?.part)[number] as number;
}

/**
 * The parts of an op, in the order in which they get ready.
 *
 * @param before the nodes before it in the recorded graph.
 */
function partsOf(
  node: PlanNode,
  before: readonly PlanNode[],
  divides: boolean,
): readonly PlacedPart[] {
  const position = before.length;
  const whole = node.launch.bindings[0] as Binding<Storage>;
  const { division } = node.launch.kernel as HostOp;
  const { leastBytes } = division as Division;
  // A small group, such as biases, waits for the last of its gradients anyway.
  const isSmall = bytesFor(whole.dtype, whole.length) <= leastBytes;
  const ranges =
    divides && !isSmall ? rangesOf(node, before) : [{ binding: whole, ready: position }];
  return ranges.map((range, index) => ({
    ...{ node, range },
    part: {
      ...{ index, count: ranges.length },
      offset: elementsIn(whole.dtype, range.binding.offset - whole.offset),
      length: range.binding.length,
      ...(range.apart && { rows: rowsOf(range.apart) }),
    },
  }));
}

/** The parts of an op that is divided: those to which it adds rows in two stages, and what lies between them in contiguous parts. */
function rangesOf(node: PlanNode, before: readonly PlanNode[]): readonly ReadyRange[] {
  const whole = node.launch.bindings[0] as Binding<Storage>;
  const { division } = node.launch.kernel as HostOp;
  const { parts, leastBytes } = division as Division;
  const apart = rowsApartOf(node.launch.kernel as HostOp);
  const stages = apart.flatMap((rows): readonly ReadyRange[] => {
    const binding = rows.sum;
    const last: ReadyRange = { binding, ready: before.length, apart: { stage: "rows", rows } };
    const ready = computedAt(before, lastUser(before, binding));
    return rows.hasRest ? [{ binding, ready, apart: { stage: "rest", rows } }, last] : [last];
  });
  const between = rangesBetween(whole, apart);
  const bytes = between.reduce((sum, { dtype, length }) => sum + bytesFor(dtype, length), 0);
  const most = Math.max(1, parts - apart.length);
  const limits = { parts: most, leastBytes, target: Math.max(leastBytes, Math.ceil(bytes / most)) };
  const ranges = between.flatMap((range) => contiguousParts(range, before, limits));
  return [...ranges, ...stages].sort((a, b) => a.ready - b.ready);
}

/** The ranges of a binding between parts to which rows are added. */
function rangesBetween(
  whole: Binding<Storage>,
  apart: readonly RowsApart[],
): readonly Binding<Storage>[] {
  const { dtype } = whole;
  const end = whole.offset + bytesFor(dtype, whole.length);
  const starts = [whole.offset, ...apart.map(({ sum }) => alignedEnd(sum))];
  const ends = [...apart.map(({ sum }) => sum.offset), end];
  return starts.flatMap((offset, i) => {
    const bytes = (ends[i] as number) - offset;
    return bytes > 0 ? [{ ...whole, offset, length: elementsIn(dtype, bytes) }] : [];
  });
}

/** The limits of parts, and the bytes that they should have. */
interface PartLimits extends Pick<Division, "parts" | "leastBytes"> {
  readonly target: number;
}

/**
 * Divides a binding where its parts have different last writers. Parts are contiguous and of about equal size; a part that has another
 * size, such as that of an embedding, stays whole. What is left between it and the part before, and has too few bytes, joins the latter: it
 * would wait for a large gradient otherwise.
 */
function contiguousParts(
  whole: Binding<Storage>,
  before: readonly PlanNode[],
  { parts, leastBytes, target }: PartLimits,
): readonly ReadyRange[] {
  const found: ReadyRange[][] = [];
  const lastIsSmall = (): boolean =>
    found.length > 1 && bytesOf(found.at(-1) as ReadyRange[]) < leastBytes;
  const joinLastTwo = (): void => {
    const last = found.pop() as ReadyRange[];
    found.at(-1)?.push(...last);
  };
  // Backward passes compute the gradients of the last parameters first.
  for (const range of intervalsOf(whole, before).reverse()) {
    const isLarge = bytesOf([range]) >= target;
    if (isLarge && lastIsSmall()) joinLastTwo();
    const last = found.at(-1);
    const taken = bytesOf(last ?? []);
    const isFull = taken >= target || (isLarge && taken >= leastBytes);
    if (!last || (isFull && found.length < parts)) found.push([range]);
    else last.push(range);
  }
  if (lastIsSmall()) {
    joinLastTwo();
    handBack(found, leastBytes);
  }
  return found.map((ranges) => ranges.reduce((later, earlier) => joined(earlier, later)));
}

/**
 * Moves ranges from the last part to the one before, as long as the last keeps enough bytes and the range is ready earlier than the rest. The
 * last part should be short, because nothing is left to compute beside it. Parts before these two keep the host busy meanwhile.
 */
function handBack(parts: readonly ReadyRange[][], leastBytes: number): void {
  if (parts.length < 3) return;
  const [previous, last] = parts.slice(-2) as [ReadyRange[], ReadyRange[]];
  for (const range of [...last]) {
    const rest = last.slice(1);
    const isEarlier = rest.some(({ ready }) => ready > range.ready);
    if (bytesOf(rest) < leastBytes || !isEarlier) return;
    previous.push(range);
    last.shift();
  }
}

const bytesOf = (ranges: readonly ReadyRange[]): number =>
  ranges.reduce((sum, { binding: { dtype, length } }) => sum + bytesFor(dtype, length), 0);

/** Two neighbouring ranges as one: the first one lies before the second. */
const joined = (first: ReadyRange, second: ReadyRange): ReadyRange => ({
  binding: { ...first.binding, length: first.binding.length + second.binding.length },
  ready: Math.max(first.ready, second.ready),
});

/** The alignment of the offset of every binding, in bytes. */
const alignment = 256;

/** The ranges between the places at which launches begin to write, in the order of addresses. */
function intervalsOf(whole: Binding<Storage>, before: readonly PlanNode[]): ReadyRange[] {
  const { buffer, offset, length, dtype } = whole;
  const end = offset + bytesFor(dtype, length);
  const starts = new Set([offset]);
  for (const node of before)
    for (const [b, binding] of node.launch.bindings.entries())
      if (binding.buffer === buffer && isWrite(node, b) && binding.offset % alignment === 0)
        if (offset < binding.offset && binding.offset < end) starts.add(binding.offset);
  const sorted = [...starts].sort((a, b) => a - b);
  return sorted.map((start, i) => {
    const binding = {
      ...whole,
      offset: start,
      length: elementsIn(dtype, (sorted[i + 1] ?? end) - start),
    };
    return { binding, ready: computedAt(before, lastUser(before, binding)) };
  });
}

/**
 * The position at which the value is computed that a node stores. Backward passes record the assignments of all gradients at their end;
 * later passes make the launches that compute them store them.
 */
function computedAt(nodes: readonly PlanNode[], position: number): number {
  const node = nodes[position];
  if (!node || !(isCopy(node) || isAccumulation(node.launch.kernel))) return position;
  const { buffer } = node.launch.bindings[0] as Binding<Storage>;
  if (buffer.isResident) return position;
  const producer = nodes
    .slice(0, position)
    .findLastIndex((other) =>
      other.launch.bindings.some((result, b) => result.buffer === buffer && isWrite(other, b)),
    );
  return producer < 0 ? position : computedAt(nodes, producer);
}

/** The position of the last node that uses a range; −1 where none does. */
const lastUser = (nodes: readonly PlanNode[], range: Binding<Storage>): number =>
  nodes.findLastIndex((node) => uses(node, range));

/** The position of the last host op that is not divided; −1 where there is none. */
const lastWholeOp = (nodes: readonly PlanNode[]): number =>
  nodes.findLastIndex(({ launch: { kernel } }) => isHostOp(kernel) && !kernel.division);

/** The position of the first node behind an op that uses its first binding; the end of the graph where none does. */
function firstUser({ nodes }: PlanGraph, op: PlanNode): number {
  const range = op.launch.bindings[0] as Binding<Storage>;
  const own = nodes.indexOf(op);
  const found = nodes.findIndex((node, n) => n > own && uses(node, range));
  return found < 0 ? nodes.length : found;
}

const uses = ({ launch }: PlanNode, range: Binding<Storage>): boolean =>
  launch.bindings.some((binding) => binding.buffer === range.buffer && overlaps(binding, range));

/** The nodes that carry out a part. */
function carried(
  node: PlanNode,
  { binding, apart }: ReadyRange,
  part: HostPart,
): { before: readonly PlanNode[]; op: PlanNode; after: readonly PlanNode[] } {
  const { name, division, bindings: roles } = node.launch.kernel as HostOp;
  const allocate = (bytes: number): Storage =>
    new Storage(binding.buffer.owner, Math.ceil(bytes / 16) * 16);
  const { carry, carryRows } = division as Division;
  const carriedRows = apart && carryRows?.(apart.rows, apart.stage, allocate);
  const recordedRoles = roles.length - 2 * rowsApartOf(node.launch.kernel as HostOp).length;
  const others = node.launch.bindings.slice(1, recordedRoles);
  const { before, operands, after } = carriedRows ?? carry(binding, allocate, part, others);
  const { recorded, isBackward } = node;
  const asNode = (launch: Launch<Storage>): PlanNode => ({
    ...{ launch, recorded, isBackward },
    sources: new Map(),
  });
  const kernel = hostKernel({ name, bindings: operands.map(({ role }) => role) });
  const bindings = operands.map((operand) => operand.binding);
  return {
    before: before.map(asNode),
    op: { ...node, launch: { kernel, bindings, scalars: {} }, part },
    after: after.map(asNode),
  };
}
