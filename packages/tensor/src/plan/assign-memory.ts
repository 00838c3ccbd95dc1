import { sizeClass } from "@halfstep/device";
import type { Storage } from "../storage.js";
import { isRead, isWrite, type PlanGraph, type PlanNode } from "./graph.js";

/** Where the transients of a plan live: each in one slot, and slots are shared by transients that never live together. */
export interface MemoryPlan {
  readonly slotOf: ReadonlyMap<Storage, number>;
  /** Bytes of each slot. */
  readonly slots: readonly number[];
  /** The transients in the order in which they come to life. */
  readonly lives: readonly Lifetime[];
}

/** From when to when a transient holds something that is wanted. */
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
  bytes: number;
  /** The last node that uses its present tenant. */
  until: number;
}

/**
 * Assigns transients to slots, greedily by best fit in the order in which they come to life. A slot is a whole buffer,
 * because WebGPU forbids one dispatch to read and to write a buffer, even in disjoint ranges; so a launch's results never
 * take the slot of one of its operands.
 */
export function assignMemory(graph: PlanGraph, reuse: boolean): MemoryPlan {
  const slots: Slot[] = [];
  const slotOf = new Map<Storage, number>();
  const lives = lifetimes(graph);
  for (const { storage, first, last } of lives) {
    // The sizes in which a device's pool hands out memory, so that a plan's peak is what will be allocated.
    const bytes = sizeClass(storage.byteLength);
    const free = reuse ? bestFit(slots, bytes, first) : undefined;
    const slot = free ?? slots.push({ bytes, until: -1 }) - 1;
    const chosen = slots[slot] as Slot;
    chosen.bytes = Math.max(chosen.bytes, bytes);
    chosen.until = last;
    slotOf.set(storage, slot);
  }
  return { slotOf, slots: slots.map(({ bytes }) => bytes), lives };
}

function lifetimes({ nodes, kept }: PlanGraph): readonly Lifetime[] {
  const lives = new Map<Storage, OpenLifetime>();
  for (const [n, node] of nodes.entries())
    for (const { buffer } of node.launch.bindings) {
      if (buffer.isResident) continue;
      const life = lives.get(buffer);
      if (life) life.last = n;
      // The host fills inputs before the first launch.
      else lives.set(buffer, { storage: buffer, first: buffer.hostData ? -1 : n, last: n });
    }
  for (const storage of kept) {
    const life = lives.get(storage);
    if (life) life.last = nodes.length;
    else if (storage.hostData) lives.set(storage, { storage, first: -1, last: nodes.length });
  }
  return [...lives.values()].sort((a, b) => a.first - b.first);
}

/** The free slot that wastes least; growing a slot costs more than leaving room in one. */
function bestFit(slots: readonly Slot[], bytes: number, first: number): number | undefined {
  let best: number | undefined;
  let bestCost = Number.POSITIVE_INFINITY;
  for (const [index, slot] of slots.entries()) {
    if (slot.until >= first) continue;
    const cost = slot.bytes >= bytes ? slot.bytes - bytes : (bytes - slot.bytes) * 4;
    if (cost < bestCost) {
      best = index;
      bestCost = cost;
    }
  }
  return best;
}

/** What the forward pass leaves behind for the backward pass to read. */
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
