import type { Binding, Kernel } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { add } from "@halfstep/kernels";
import { isAccumulation, isElementwise, rowSumOf, segmentedIndex } from "@halfstep/kernels/planner";
import { type AddedRows, type HostOp, hostKernel, isHostOp } from "../../record/host-op.js";
import type { Storage } from "../../record/storage.js";
import { type PlanGraph, type PlanNode, withBinding } from "../graph.js";
import { isCopy } from "./fold-casts.js";
import { Rewriting, type Use } from "./rewriting.js";

/** A part of a host op's first binding to which the op adds rows. */
export interface RowsApart extends AddedRows<Storage> {
  /** What a launch stores in the part, or adds to it: the rows, or the rows and the rest. */
  readonly term: Storage;
  /** The rest of the term; undefined where it is rows alone. */
  readonly other: Binding<Storage> | undefined;
  /** Whether something is in the part before the rows. */
  readonly hasRest: boolean;
}

/** The parts with rows of each host op of a graph, in order. */
export type RowsOfOps = readonly (readonly RowsApart[])[];

/** A host op that reads the rows of parts besides what it was recorded with. */
interface HostOpWithRows extends HostOp {
  readonly rowsApart: readonly RowsApart[];
}

/** The parts to which a host op adds rows, in the order of addresses. */
export const rowsApartOf = (op: HostOp): readonly RowsApart[] =>
  (op as Partial<HostOpWithRows>).rowsApart ?? [];

/** The alignment of the offset of every binding, in bytes. */
const alignment = 256;

/** The first aligned byte behind a binding. */
export const alignedEnd = ({ offset, dtype, length }: Binding<Storage>): number =>
  Math.ceil((offset + bytesFor(dtype, length)) / alignment) * alignment;

/**
 * Finds sums of rows that host ops can add themselves: the gradients of embeddings.
 *
 * @param graph before all passes.
 */
export function findRows(graph: PlanGraph): RowsOfOps {
  const work = new Rewriting(graph);
  return graph.nodes.flatMap((node, n) => {
    const { kernel, bindings } = node.launch;
    if (!isHostOp(kernel)) return [];
    const { carryRows, leastBytes = 0 } = kernel.division ?? {};
    const { writes } = work.usesOf((bindings[0] as Binding<Storage>).buffer);
    const found = carryRows
      ? writes.flatMap((write) => rowsStoredBy(work, write, n, leastBytes))
      : [];
    return [found.sort((a, b) => a.sum.offset - b.sum.offset)];
  });
}

/**
 * Leaves sums of rows to host ops. A tied embedding then holds the gradient of the last product alone, which is computed early in a backward
 * pass, and the host op gets the rows of the batch apart. What has added the rows is left without a reader.
 *
 * @param graph before all passes: that in which rows were found, or one that searches have added launches to.
 */
export function keepRowsApart(graph: PlanGraph, rowsOfOps: RowsOfOps): PlanGraph {
  const work = new Rewriting(graph);
  let ops = 0;
  for (const [n, node] of graph.nodes.entries()) {
    const { kernel } = node.launch;
    const found = isHostOp(kernel) ? rowsOfOps[ops++] : undefined;
    if (!found?.length) continue;
    for (const rows of found) leaveOut(work, rows, n);
    work.replace(n, withRows(node, kernel as HostOp, found));
  }
  return work.graph();
}

/** Makes the launches that store a term store its rest alone, before the host op at a position. */
function leaveOut(work: Rewriting, { sum, term, other }: RowsApart, op: number): void {
  for (const { node: position, binding } of work.usesOf(term).reads) {
    const node = work.at(position) as PlanNode;
    if (other) {
      const { rounding: _, ...read } = node.launch.bindings[binding] as Binding<Storage>;
      work.replace(position, withBinding(node, binding, { ...read, ...other }));
    } else if (
      isAccumulation(node.launch.kernel) ||
      (isCopy(node) && !work.isTouchedBetween(sum, position, op, "any"))
    )
      work.remove(position);
  }
}

/** The node of a host op that also reads rows. */
function withRows(node: PlanNode, op: HostOp, rowsApart: readonly RowsApart[]): PlanNode {
  const read = (name: string) => ({ name, access: "read" as const });
  const { name, bindings, division, isFinal } = op;
  const roles = [...bindings, ...rowsApart.flatMap(() => [read("index"), read("rows")])];
  const widened = hostKernel({ name, bindings: roles, isFinal, ...(division && { division }) });
  const kernel: HostOpWithRows = Object.assign(widened, { rowsApart });
  const further = rowsApart.flatMap(({ index, rows }) => [index, rows]);
  const { launch } = node;
  return { ...node, launch: { ...launch, kernel, bindings: [...launch.bindings, ...further] } };
}

/** The sum of rows that is the last term of what a write stores for a host op; an empty list where it is none. */
function rowsStoredBy(
  work: Rewriting,
  write: Use,
  op: number,
  leastBytes: number,
): readonly RowsApart[] {
  const node = work.nodeOf(write);
  const adds = isAccumulation(node.launch.kernel);
  if (write.node >= op || !(adds || isCopy(node))) return [];
  const [term, sum] = node.launch.bindings as [Binding<Storage>, Binding<Storage>];
  const isLarge = bytesFor(sum.dtype, sum.length) > leastBytes;
  if (!isLarge || !isWholePart(work, sum, write.node, op)) return [];
  const stored = onlyWriteOf(work, term);
  if (!stored) return [];
  const rows = rowsOf(work, stored, sum, op);
  if (rows) return [{ ...rows, term: term.buffer, other: undefined, hasRest: adds }];
  const { launch } = work.nodeOf(stored);
  if (!isPlainSum(launch.kernel)) return [];
  const [a, b] = launch.bindings as [Binding<Storage>, Binding<Storage>];
  for (const [last, other] of [
    [b, a],
    [a, b],
  ] as const) {
    const producer = onlyWriteOf(work, last);
    const added = producer && rowsOf(work, producer, sum, op);
    if (!added || !isPlain(other) || other.length !== sum.length) continue;
    if (work.isTouchedBetween(other, stored.node, write.node, "write")) continue;
    return [{ ...added, term: term.buffer, other, hasRest: true }];
  }
  return [];
}

/** Whether a kernel adds two float tensors of one shape. */
function isPlainSum(kernel: Kernel): boolean {
  if (!isElementwise(kernel)) return false;
  const { steps, inputs } = kernel.elementwise;
  return (
    steps.length === 1 && steps[0]?.expression === add && inputs.every((each) => each === "same")
  );
}

const isPlain = ({ dtype, rounding }: Binding<Storage>): boolean =>
  dtype === "float32" && rounding === undefined;

/** Whether a write stores a part of a host op's first binding that nothing uses in between, and behind which a part can begin. */
function isWholePart(work: Rewriting, sum: Binding<Storage>, write: number, op: number): boolean {
  const [whole] = (work.at(op) as PlanNode).launch.bindings as [Binding<Storage>];
  const ends = [sum, whole].map(({ offset, dtype, length }) => offset + bytesFor(dtype, length));
  const [end, wholeEnd] = ends as [number, number];
  if (!isPlain(sum) || sum.offset % alignment !== 0) return false;
  if (sum.offset < whole.offset || end > wholeEnd) return false;
  if (work.isTouchedBetween(sum, write, op, "any")) return false;
  const length = (alignedEnd(sum) - end) / 4;
  const gap = { ...sum, offset: end, length };
  return length === 0 || !work.isTouchedBetween(gap, -1, op, "write");
}

/** The write of a transient that one launch writes and one reads; undefined for other memory. */
function onlyWriteOf(work: Rewriting, { buffer }: Binding<Storage>): Use | undefined {
  const { writes, reads } = work.usesOf(buffer);
  const isShared = buffer.isResident || work.kept.has(buffer);
  return isShared || writes.length !== 1 || reads.length !== 1 ? undefined : writes[0];
}

/** The rows that a launch adds up, where they are what a host op can add later. */
function rowsOf(
  work: Rewriting,
  { node: position }: Use,
  sum: Binding<Storage>,
  op: number,
): AddedRows<Storage> | undefined {
  const added = rowSumOf((work.at(position) as PlanNode).launch);
  if (!added) return undefined;
  const { starts, rows, sum: out } = added;
  const [found] = work.usesOf(starts.buffer).writes;
  const index = found && segmentedIndex(work.nodeOf(found).launch);
  if (!index || !isPlain(rows) || !isPlain(out) || out.length !== sum.length) return undefined;
  // State that changes in the step is committed behind the last host op.
  const isState = ({ buffer }: Binding<Storage>): boolean =>
    buffer.isResident && work.usesOf(buffer).writes.length > 0;
  if ([index, rows].some(isState)) return undefined;
  const areChanged =
    work.isTouchedBetween(index, found.node, op, "write") ||
    work.isTouchedBetween(rows, position, op, "write");
  return areChanged ? undefined : { sum, index, rows };
}
