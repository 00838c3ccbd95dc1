import { sizeClass } from "@halfstep/device";
import type { Storage } from "../record/storage.js";
import { isRead, isWrite, type PlanGraph, type PlanNode } from "./graph.js";

/** The slot of each transient of a plan. Transients whose lifetimes do not overlap share slots. */
export interface MemoryPlan {
  readonly slotOf: ReadonlyMap<Storage, number>;
  /** Bytes of each slot. */
  readonly slots: readonly number[];
  /** The transients in the order in which their lifetimes begin. */
  readonly lives: readonly Lifetime[];
}

/** The lifetime of a transient. */
export interface Lifetime {
  readonly storage: Storage;
  /** The node that writes it first; −1 where the host does. */
  readonly first: number;
  /** The last node that uses it; the number of nodes where it outlives them. */
  readonly last: number;
}

interface OpenLifetime extends Lifetime {
  last: number;
}

interface Slot {
  readonly bytes: number;
  readonly tenants: Lifetime[];
}

/**
 * Assigns transients to slots, the largest first, each to the smallest slot that is free for all its life (Pisarchyk and Lee 2020,
 * "Efficient memory management for deep neural net inference": shared objects, greedy by size). A slot is a whole buffer,
 * because WebGPU forbids one dispatch to read and to write a buffer, even in disjoint ranges; so a launch's results never
 * take the slot of one of its operands.
 */
export function assignMemory(graph: PlanGraph, reuse: boolean): MemoryPlan {
  const slots: Slot[] = [];
  const slotOf = new Map<Storage, number>();
  const lives = lifetimes(graph);
  // The sizes in which a device's pool hands out memory, so that a plan's peak is what will be allocated.
  const sized = lives.map((life) => ({ life, bytes: sizeClass(life.storage.byteLength) }));
  for (const { life, bytes } of sized.sort((x, y) => y.bytes - x.bytes)) {
    const free = reuse ? freeSlot(slots, life) : undefined;
    const slot = free ?? slots.push({ bytes, tenants: [] }) - 1;
    slots[slot]?.tenants.push(life);
    slotOf.set(life.storage, slot);
  }
  return { slotOf, slots: slots.map(({ bytes }) => bytes), lives };
}

/** Slots that are considered for a value. The limit bounds the time to plan recordings of thousands of kept values. */
const nearest = 512;

/** The smallest slot that is free during the lifetime of a value. Slots were made in the order of their sizes, largest first. */
function freeSlot(slots: readonly Slot[], { first, last }: Lifetime): number | undefined {
  const stop = Math.max(0, slots.length - nearest);
  for (let i = slots.length - 1; i >= stop; i--)
    if ((slots[i] as Slot).tenants.every((other) => other.last < first || last < other.first))
      return i;
  return undefined;
}

export function lifetimes({ nodes, kept }: PlanGraph): readonly Lifetime[] {
  const lives = new Map<Storage, OpenLifetime>();
  const afterHostOps = nodes.findLastIndex(({ part }) => part !== undefined) + 1;
  for (const [n, node] of nodes.entries())
    for (const [b, { buffer }] of node.launch.bindings.entries()) {
      if (buffer.isResident) continue;
      const life = lives.get(buffer);
      // A function of the host stores its results at any time until the last one has ended.
      const last = node.part && isWrite(node, b) ? Math.max(n, afterHostOps) : n;
      if (life) life.last = Math.max(life.last, last);
      // The host fills inputs before the first launch.
      else lives.set(buffer, { storage: buffer, first: buffer.hostData ? -1 : n, last });
    }
  for (const storage of kept) {
    const life = lives.get(storage);
    if (life) life.last = nodes.length;
    else {
      // Results without elements have memory, although no launch writes them.
      const first = storage.hostData ? -1 : nodes.length;
      lives.set(storage, { storage, first, last: nodes.length });
    }
  }
  return [...lives.values()].sort((a, b) => a.first - b.first);
}

/** The transients that the forward pass writes and the backward pass reads. */
export function heldForBackward(nodes: readonly PlanNode[]): ReadonlySet<Storage> {
  const forward = new Set<Storage>();
  const held = new Set<Storage>();
  for (const node of nodes)
    for (const [b, { buffer }] of node.launch.bindings.entries()) {
      if (buffer.isResident) continue;
      if (!node.isBackward && (isWrite(node, b) || buffer.hostData)) forward.add(buffer);
      if (node.isBackward && isRead(node, b) && (forward.has(buffer) || buffer.hostData))
        held.add(buffer);
    }
  return held;
}
