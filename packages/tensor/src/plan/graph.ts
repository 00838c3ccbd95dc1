import { type Binding, bytesPerElement, type Launch } from "@halfstep/device";
import type { Storage } from "../storage.js";

/** Where a launch takes a runtime scalar from: a launch of the recording, by position, and the scalar's name there. */
export interface ScalarSource {
  readonly launch: number;
  readonly name: string;
}

/** A launch on its way through the passes. */
export interface PlanNode {
  readonly launch: Launch<Storage>;
  /** For each runtime scalar. */
  readonly sources: ReadonlyMap<string, ScalarSource>;
  readonly isBackward: boolean;
}

/** What passes transform: nodes in program order, and the transients that must survive them. */
export interface PlanGraph {
  readonly nodes: readonly PlanNode[];
  readonly kept: ReadonlySet<Storage>;
}

/** A pass is a pure function. It changes no bit of any result (the as-if rule). */
export type Pass = (graph: PlanGraph) => PlanGraph;

export const isWrite = (node: PlanNode, binding: number): boolean =>
  node.launch.kernel.bindings[binding]?.access !== "read";
export const isRead = (node: PlanNode, binding: number): boolean =>
  node.launch.kernel.bindings[binding]?.access !== "write";

/** One appearance of a storage in a launch. */
export interface Use {
  readonly node: number;
  readonly binding: number;
}

export interface Uses {
  readonly writes: Use[];
  readonly reads: Use[];
}

/** Who writes and who reads each storage. */
export function usesOf(nodes: readonly PlanNode[]): Map<Storage, Uses> {
  const uses = new Map<Storage, Uses>();
  for (const [n, node] of nodes.entries())
    for (const [b, { buffer }] of node.launch.bindings.entries()) {
      let of = uses.get(buffer);
      if (!of) {
        of = { writes: [], reads: [] };
        uses.set(buffer, of);
      }
      if (isWrite(node, b)) of.writes.push({ node: n, binding: b });
      if (isRead(node, b)) of.reads.push({ node: n, binding: b });
    }
  return uses;
}

/** True where the bytes of a binding may change, or be read, by a node strictly between two positions. */
export function isTouchedBetween(
  nodes: readonly PlanNode[],
  binding: Binding<Storage>,
  after: number,
  before: number,
  touch: "write" | "any",
): boolean {
  const from = binding.offset;
  const to = from + binding.length * bytesPerElement(binding.dtype);
  for (let n = after + 1; n < before; n++) {
    const node = nodes[n] as PlanNode;
    for (const [b, other] of node.launch.bindings.entries()) {
      if (other.buffer !== binding.buffer) continue;
      if (touch === "write" && !isWrite(node, b)) continue;
      const start = other.offset;
      const end = start + other.length * bytesPerElement(other.dtype);
      if (start < to && from < end) return true;
    }
  }
  return false;
}

/** WebGPU forbids one dispatch to read a buffer and to write it, even in disjoint ranges. */
export function hasConflict(launch: Launch<Storage>): boolean {
  const written = new Set<Storage>();
  for (const [b, { buffer }] of launch.bindings.entries())
    if (launch.kernel.bindings[b]?.access !== "read") written.add(buffer);
  return launch.bindings.some(
    ({ buffer }, b) => launch.kernel.bindings[b]?.access === "read" && written.has(buffer),
  );
}

export const sameRange = (a: Binding<Storage>, b: Binding<Storage>): boolean =>
  a.buffer === b.buffer && a.offset === b.offset && a.length === b.length && a.dtype === b.dtype;

/** The node with another binding at one place. */
export function withBinding(node: PlanNode, index: number, binding: Binding<Storage>): PlanNode {
  const bindings = node.launch.bindings.map((old, b) => (b === index ? binding : old));
  return { ...node, launch: { ...node.launch, bindings } };
}
