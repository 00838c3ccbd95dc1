import type { Binding, Launch } from "@halfstep/device";
import { elementsIn } from "@halfstep/formats/dtypes";
import { elementwise, identity } from "@halfstep/kernels";
import type { HostOp } from "../../record/host-op.js";
import { Storage } from "../../record/storage.js";
import { isWrite, type PlanGraph, type PlanNode } from "../graph.js";

/**
 * Makes a step with host ops change its state behind the last of them, so that nothing has changed if a function of the host fails.
 * Residents that are written before, such as running statistics, are computed in a copy, which is stored behind it. The operands of host
 * ops themselves, such as gradients, are not state. Ops that pass the state on do not count.
 *
 * @param operands the buffers that host ops were recorded with.
 */
export function commitState(graph: PlanGraph, operands: ReadonlySet<Storage>): PlanGraph {
  const last = graph.nodes.findLastIndex(isBeforeState);
  const first = new Map<Storage, { readonly position: number; readonly by: Binding<Storage> }>();
  for (const [position, node] of graph.nodes.slice(0, Math.max(0, last)).entries())
    for (const [b, by] of node.launch.bindings.entries())
      if (by.buffer.isResident && isWrite(node, b) && !operands.has(by.buffer))
        if (!first.has(by.buffer)) first.set(by.buffer, { position, by });
  if (first.size === 0) return graph;
  const copies = new Map(
    [...first].map(([state]) => [state, new Storage(state.owner, state.byteLength)]),
  );
  const nodes: PlanNode[] = [];
  for (const [n, node] of graph.nodes.entries()) {
    for (const [state, { position, by }] of first)
      if (position === n) nodes.push(copying(node, by, state, copies.get(state) as Storage));
    nodes.push(n <= last ? onCopies(node, n, first, copies) : node);
    if (n !== last) continue;
    for (const [state, { by }] of first)
      nodes.push(copying(node, by, copies.get(state) as Storage, state));
  }
  return { ...graph, nodes };
}

/** Whether a node is a host op before which the state of the step must not change. */
export const isBeforeState = ({ part, launch: { kernel } }: PlanNode): boolean =>
  part !== undefined && !(kernel as HostOp).isFinal;

/** The node with copies in place of the states that were written so far, or are now. */
function onCopies(
  node: PlanNode,
  n: number,
  first: ReadonlyMap<Storage, { readonly position: number }>,
  copies: ReadonlyMap<Storage, Storage>,
): PlanNode {
  const isCopied = ({ buffer }: Binding<Storage>): boolean =>
    (first.get(buffer)?.position ?? Number.POSITIVE_INFINITY) <= n;
  if (!node.launch.bindings.some(isCopied)) return node;
  const bindings = node.launch.bindings.map((binding) =>
    isCopied(binding) ? { ...binding, buffer: copies.get(binding.buffer) as Storage } : binding,
  );
  return { ...node, launch: { ...node.launch, bindings } };
}

/** A node that copies a whole storage, as elements of the dtype in which it is written. */
function copying(
  { isBackward }: PlanNode,
  { dtype }: Binding<Storage>,
  from: Storage,
  to: Storage,
): PlanNode {
  const length = elementsIn(dtype, from.byteLength);
  const whole = (buffer: Storage) => ({ buffer, offset: 0, length, dtype, shape: [length] });
  const launch: Launch<Storage> = elementwise(identity, [whole(from)], whole(to));
  return { launch, sources: new Map(), recorded: [], isBackward };
}
