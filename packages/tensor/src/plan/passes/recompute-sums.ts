import type { Binding } from "@halfstep/device";
import { add, type Expression, isElementwise, isGather, where } from "@halfstep/kernels";
import { Storage } from "../../record/storage.js";
import { isWrite, type Pass, type PlanNode, withBinding } from "../graph.js";
import { Rewriting, type Use } from "./rewriting.js";

/** What a launch costs has to be worth as many bytes. */
const leastSaved = 16_384;

/** Expressions that cost nothing beside reading what they add. */
const sumExpressions: ReadonlySet<Expression> = new Set([add, where]);

/**
 * Adds again in the backward pass what the forward pass has added, where its terms take less memory until then than the sum:
 * under autocast the residual stream is float32, and what each branch adds to it has 16 bits. Rows of a parameter among the
 * terms (embeddings) are looked up again.
 */
export const recomputeSums: Pass = (graph) => {
  const work = new Rewriting(graph);
  /** Until when what is added again needs its terms. */
  const neededUntil = new Map<Storage, number>();
  const added = new Map<number, PlanNode[]>();
  for (let n = 0; n < work.length; n++) {
    const node = work.at(n);
    if (!node || !isSum(node)) continue;
    const first = firstBackwardReader(work, node);
    const repeated = first === undefined ? undefined : repeat(work, n, first, neededUntil);
    if (first === undefined || !repeated) continue;
    readInstead(work, resultOf(node).buffer, resultOf(repeated.at(-1) as PlanNode).buffer);
    added.set(first, [...(added.get(first) ?? []), ...repeated]);
    for (const { buffer } of repeated.flatMap(termsOf))
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
const termsOf = ({ launch }: PlanNode): readonly Binding<Storage>[] => launch.bindings.slice(0, -1);

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
  const backward = reads.filter((use) => work.nodeOf(use).isBackward).map((use) => use.node);
  return backward.length > 0 ? Math.min(...backward) : undefined;
}

/** The nodes that compute a sum again before node `first`; undefined where that would not be worth it. */
function repeat(
  work: Rewriting,
  position: number,
  first: number,
  neededUntil: ReadonlyMap<Storage, number>,
): readonly PlanNode[] | undefined {
  const isHeld = ({ buffer }: Binding<Storage>): boolean =>
    buffer.isResident ||
    (neededUntil.get(buffer) ?? 0) >= first ||
    work.usesOf(buffer).reads.some((use) => use.node >= first && !isRounded(work, use));
  const node = work.at(position) as PlanNode;
  const lookups: PlanNode[] = [];
  let sum = repeated(node);
  let saved = resultOf(node).buffer.byteLength;
  for (const term of new Map(termsOf(node).map((each) => [each.buffer, each])).values()) {
    if (work.isTouchedBetween(term, position, first, "write")) return undefined;
    if (isHeld(term)) continue;
    const lookup = lookupOf(work, term, first, isHeld);
    if (lookup) {
      lookups.push(lookup);
      sum = reading(sum, term.buffer, resultOf(lookup).buffer);
    } else saved -= term.buffer.byteLength;
  }
  return saved >= leastSaved ? [...lookups, sum] : undefined;
}

/** Whether a value is rounded while it is loaded. What the backward pass keeps of it is its twin, see store-twins.ts. */
const isRounded = (work: Rewriting, use: Use): boolean =>
  work.nodeOf(use).launch.bindings[use.binding]?.rounding !== undefined;

/** The node that looks up the rows of a term again, if that is where it comes from and everything is still there. */
function lookupOf(
  work: Rewriting,
  term: Binding<Storage>,
  first: number,
  isHeld: (binding: Binding<Storage>) => boolean,
): PlanNode | undefined {
  const [write, ...more] = work.usesOf(term.buffer).writes;
  if (!write || more.length > 0) return undefined;
  const node = work.nodeOf(write);
  const isThere = (read: Binding<Storage>): boolean =>
    isHeld(read) && !work.isTouchedBetween(read, write.node, first, "write");
  return isGather(node.launch.kernel) && !node.isBackward && termsOf(node).every(isThere)
    ? repeated(node)
    : undefined;
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

/** Makes the backward pass read another storage in place of one. */
function readInstead(work: Rewriting, from: Storage, to: Storage): void {
  for (const { node: position } of work.usesOf(from).reads) {
    const node = work.at(position) as PlanNode;
    if (node.isBackward) work.replace(position, reading(node, from, to));
  }
}
