import type { Binding } from "@halfstep/device";
import { overlaps } from "../../record/bindings.js";
import type { Storage } from "../../record/storage.js";
import { isRead, isWrite, type PlanGraph, type PlanNode } from "../graph.js";

/** One use of a storage by a launch. */
export interface Use {
  readonly node: number;
  readonly binding: number;
}

/** The uses of a storage that write and that read, unordered. A binding that does both is in both. */
export interface Uses {
  readonly writes: readonly Use[];
  readonly reads: readonly Use[];
}

interface UseLists {
  writes: Use[];
  reads: Use[];
}

const noUses: Uses = { writes: [], reads: [] };

/**
 * A graph while a pass changes it. Positions stay what they were: a removed node leaves a gap. Uses are kept up to date, so
 * that a pass takes time in proportion to its graph.
 */
export class Rewriting {
  readonly kept: ReadonlySet<Storage>;
  readonly #nodes: (PlanNode | undefined)[];
  readonly #uses = new Map<Storage, UseLists>();

  constructor({ nodes, kept }: PlanGraph) {
    this.kept = kept;
    this.#nodes = [...nodes];
    for (const [n, node] of nodes.entries()) this.#addUses(n, node);
  }

  /** Number of positions, gaps included. */
  get length(): number {
    return this.#nodes.length;
  }

  /** The node at a position; undefined where it was removed. */
  at(position: number): PlanNode | undefined {
    return this.#nodes[position];
  }

  /** The node of a use. */
  nodeOf({ node }: Use): PlanNode {
    return this.#nodes[node] as PlanNode;
  }

  usesOf(storage: Storage): Uses {
    return this.#uses.get(storage) ?? noUses;
  }

  replace(position: number, node: PlanNode): void {
    this.remove(position);
    this.#nodes[position] = node;
    this.#addUses(position, node);
  }

  remove(position: number): void {
    const node = this.#nodes[position];
    this.#nodes[position] = undefined;
    for (const { buffer } of node?.launch.bindings ?? []) {
      const lists = this.#uses.get(buffer);
      if (!lists) continue;
      lists.writes = lists.writes.filter((use) => use.node !== position);
      lists.reads = lists.reads.filter((use) => use.node !== position);
    }
  }

  /** True where the bytes of a binding may change, or be read, by a node strictly between two positions. */
  isTouchedBetween(
    binding: Binding<Storage>,
    after: number,
    before: number,
    touch: "write" | "any",
  ): boolean {
    const { writes, reads } = this.usesOf(binding.buffer);
    const touches = (use: Use): boolean =>
      after < use.node &&
      use.node < before &&
      overlaps(binding, this.nodeOf(use).launch.bindings[use.binding] as Binding<Storage>);
    return writes.some(touches) || (touch === "any" && reads.some(touches));
  }

  /**
   * The position of the only reader of a node's result (its last binding), if the two can be merged at that position.
   * Undefined where the result has other readers, where an operand of the node is written in between, or where a further
   * result of it is used in between.
   */
  onlyReaderOf(position: number): number | undefined {
    const { bindings } = (this.#nodes[position] as PlanNode).launch;
    const { buffer } = bindings.at(-1) as Binding<Storage>;
    if (buffer.isResident || this.kept.has(buffer)) return undefined;
    const { writes, reads } = this.usesOf(buffer);
    const reader = reads[0]?.node;
    if (reader === undefined || writes.length !== 1) return undefined;
    if (reads.some(({ node }) => node !== reader)) return undefined;
    const node = this.#nodes[position] as PlanNode;
    const isChanged = bindings
      .slice(0, -1)
      .some((other, b) =>
        this.isTouchedBetween(other, position, reader, isWrite(node, b) ? "any" : "write"),
      );
    return isChanged ? undefined : reader;
  }

  graph(): PlanGraph {
    return { kept: this.kept, nodes: this.#nodes.filter((node) => node !== undefined) };
  }

  #addUses(position: number, node: PlanNode): void {
    for (const [binding, { buffer }] of node.launch.bindings.entries()) {
      let lists = this.#uses.get(buffer);
      if (!lists) {
        lists = { writes: [], reads: [] };
        this.#uses.set(buffer, lists);
      }
      const use: Use = { node: position, binding };
      if (isWrite(node, binding)) lists.writes.push(use);
      if (isRead(node, binding)) lists.reads.push(use);
    }
  }
}
