import type { Binding } from "@halfstep/device";
import { add, type Expression, where } from "@halfstep/kernels";
import { isElementwise, isGather } from "@halfstep/kernels/planner";
import { Storage } from "../../record/storage.js";
import { isWrite, type Pass, type PlanNode, withBinding } from "../graph.js";
import { Rewriting, type Use } from "./rewriting.js";

/** Bytes that a repeated launch must save at least. */
const leastSaved = 16_384;

/** Expressions whose only cost is reading their terms. */
const sumExpressions: ReadonlySet<Expression> = new Set([add, where]);

/**
 * Computes sums of the forward pass again in the backward pass, where their terms take less memory until then than the sum. Under
 * autocast the residual stream is float32, and the results of branches that are added to it have 16 bits. Rows of a parameter among
 * the terms (embeddings) are looked up again.
 */
export const rematerializeSums: Pass = (graph) => {
  const work = new Rewriting(graph);
  /** The node up to which repeated sums need each term. */
  const neededUntil = new Map<Storage, number>();
  /** Sums that the backward pass no longer reads. */
  const replaced = new Set<Storage>();
  const added = new Map<number, PlanNode[]>();
  for (let n = 0; n < work.length; n++) {
    const node = work.at(n);
    if (!node || !isSum(node)) continue;
    const first = firstBackwardReader(work, node);
    const repeated =
      first === undefined ? undefined : repeat(work, n, first, { neededUntil, replaced });
    if (first === undefined || !repeated) continue;
    replaced.add(resultOf(node).buffer);
    readInstead(work, resultOf(node).buffer, resultOf(repeated.at(-1) as PlanNode).buffer);
    added.set(first, [...(added.get(first) ?? []), ...repeated]);
    for (const { buffer } of repeated.flatMap((each) => [...termsOf(each)]))
      neededUntil.set(buffer, Math.max(first, neededUntil.get(buffer) ?? first));
  }
  const nodes: PlanNode[] = [];
  for (let n = 0; n < work.length; n++) {
    nodes.push(...(added.get(n) ?? []));
    const node = work.at(n);
    if (node) nodes.push(node);
  }
  return { kept: graph.kept, nodes };
};

const resultOf = ({ launch }: PlanNode): Binding<Storage> =>
  launch.bindings.at(-1) as Binding<Storage>;
/** The bindings that a node reads, each storage once. */
const termsOf = ({ launch }: PlanNode): Iterable<Binding<Storage>> =>
  new Map(launch.bindings.slice(0, -1).map((binding) => [binding.buffer, binding])).values();

function isSum({ launch: { kernel }, isBackward }: PlanNode): boolean {
  if (isBackward || !isElementwise(kernel)) return false;
  const { steps, outputs } = kernel.elementwise;
  return outputs.length === 1 && steps.every(({ expression }) => sumExpressions.has(expression));
}

/** The first node of the backward pass that reads the sum, if the sum is a value of this step alone. */
function firstBackwardReader(work: Rewriting, node: PlanNode): number | undefined {
  const { buffer } = resultOf(node);
  const { writes, reads } = work.usesOf(buffer);
  if (buffer.isResident || work.kept.has(buffer) || writes.length !== 1) return undefined;
  if (reads.some((use) => work.nodeOf(use).part)) return undefined;
  const backward = reads.filter((use) => work.nodeOf(use).isBackward).map((use) => use.node);
  return backward.length > 0 ? Math.min(...backward) : undefined;
}

/** The decisions about earlier sums. */
interface Repeated {
  readonly neededUntil: ReadonlyMap<Storage, number>;
  readonly replaced: ReadonlySet<Storage>;
}

/** The nodes that compute a sum again before node `first`; undefined where that does not pay. */
function repeat(
  work: Rewriting,
  position: number,
  first: number,
  { neededUntil, replaced }: Repeated,
): readonly PlanNode[] | undefined {
  const isHeld = ({ buffer }: Binding<Storage>): boolean =>
    buffer.isResident ||
    (neededUntil.get(buffer) ?? 0) >= first ||
    work.usesOf(buffer).reads.some((use) => use.node >= first && !isRounded(work, use));
  const node = work.at(position) as PlanNode;
  const before: PlanNode[] = [];
  let sum = repeated(node);
  let saved = resultOf(node).buffer.byteLength;
  for (const term of termsOf(node)) {
    if (work.isTouchedBetween(term, position, first, "write")) return undefined;
    if (isHeld(term)) continue;
    const again = replaced.has(term.buffer)
      ? undefined
      : termAgain(work, term, position, first, isHeld);
    if (again) {
      before.push(...again);
      sum = reading(sum, term.buffer, resultOf(again.at(-1) as PlanNode).buffer);
    } else saved -= term.buffer.byteLength;
  }
  return saved >= leastSaved ? [...before, sum] : undefined;
}

/** Whether a value is rounded while it is loaded. The backward pass then keeps its twin, see store-both-precisions.ts. */
const isRounded = (work: Rewriting, use: Use): boolean =>
  work.nodeOf(use).launch.bindings[use.binding]?.rounding !== undefined;

/**
 * The nodes that compute a term again from values that are still in memory: rows that were looked up, or a sum that only this sum
 * reads. The last node stores the term.
 */
function termAgain(
  work: Rewriting,
  term: Binding<Storage>,
  reader: number,
  first: number,
  isHeld: (binding: Binding<Storage>) => boolean,
): readonly PlanNode[] | undefined {
  const [write, ...more] = work.usesOf(term.buffer).writes;
  if (!write || more.length > 0) return undefined;
  const node = work.nodeOf(write);
  const isPart = isSum(node) && work.onlyReaderOf(write.node) === reader;
  if (node.isBackward || !(isPart || isGather(node.launch.kernel))) return undefined;
  const before: PlanNode[] = [];
  let again = repeated(node);
  for (const own of termsOf(node)) {
    if (work.isTouchedBetween(own, write.node, first, "write")) return undefined;
    if (isHeld(own)) continue;
    const nodes = isPart ? termAgain(work, own, write.node, first, isHeld) : undefined;
    if (!nodes) return undefined;
    before.push(...nodes);
    again = reading(again, own.buffer, resultOf(nodes.at(-1) as PlanNode).buffer);
  }
  return [...before, again];
}

/** The same launch in the backward pass, with a result of its own. */
function repeated(node: PlanNode): PlanNode {
  const result = resultOf(node);
  const buffer = new Storage(result.buffer.owner, result.buffer.byteLength);
  const last = node.launch.bindings.length - 1;
  return { ...withBinding(node, last, { ...result, buffer }), isBackward: true };
}

function reading(node: PlanNode, from: Storage, to: Storage): PlanNode {
  let changed = node;
  for (const [b, binding] of node.launch.bindings.entries())
    if (binding.buffer === from && !isWrite(node, b))
      changed = withBinding(changed, b, { ...binding, buffer: to });
  return changed;
}

/** Replaces a storage by another one in the backward pass. */
function readInstead(work: Rewriting, from: Storage, to: Storage): void {
  for (const { node: position } of work.usesOf(from).reads) {
    const node = work.at(position) as PlanNode;
    if (node.isBackward) work.replace(position, reading(node, from, to));
  }
}
