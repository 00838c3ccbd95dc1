import type { Binding, DType, HalfDType, KernelBinding } from "@halfstep/device";
import { isElementwise } from "@halfstep/kernels";
import type { Storage } from "../storage.js";
import {
  halfOf,
  hasConflict,
  isRead,
  isTouchedBetween,
  isWrite,
  type Pass,
  type PlanNode,
  roundings,
  usesOf,
  withBinding,
} from "./graph.js";

/**
 * Folds casts and copies into their neighbours, so that they cost no kernel of their own: the producer stores what the cast
 * would have stored, or the consumers load through the cast. A folded cast still rounds wherever it would have rounded.
 */
export const foldCasts: Pass = (graph) => {
  let nodes = [...graph.nodes];
  for (let n = 0; n < nodes.length; n++) {
    const node = nodes[n] as PlanNode;
    if (!isCopy(node)) continue;
    const folded =
      foldIntoProducer(nodes, n, graph.kept) ?? foldIntoConsumers(nodes, n, graph.kept);
    if (!folded) continue;
    nodes = folded;
    n--;
  }
  return { ...graph, nodes };
};

/** True for a launch that only copies, and perhaps casts. */
export function isCopy({ launch: { kernel } }: PlanNode): boolean {
  if (!isElementwise(kernel)) return false;
  const { inputs, steps } = kernel.elementwise;
  return steps.length === 1 && steps[0]?.expression.name === "identity" && inputs[0] === "same";
}

function accepts(parameter: KernelBinding | undefined, dtype: DType): boolean {
  if (!parameter) return false;
  const { dtypes = ["float32", "float16", "bfloat16"], unit = 4, access } = parameter;
  if (!dtypes.includes(dtype)) return false;
  return access === "read" || unit > 1 || !halfOf(dtype);
}

function rebound(
  binding: Binding<Storage>,
  to: Binding<Storage>,
  rounding: HalfDType | undefined,
): Binding<Storage> {
  const { buffer, offset, dtype } = to;
  const moved = { buffer, offset, length: binding.length, dtype };
  return rounding && rounding !== dtype ? { ...moved, rounding } : moved;
}

function foldIntoProducer(
  nodes: readonly PlanNode[],
  cast: number,
  kept: ReadonlySet<Storage>,
): PlanNode[] | undefined {
  const [from, to] = (nodes[cast] as PlanNode).launch.bindings as [
    Binding<Storage>,
    Binding<Storage>,
  ];
  const uses = usesOf(nodes).get(from.buffer);
  const producer = uses?.writes[0];
  if (!uses || !producer || uses.writes.length > 1) return undefined;
  if (from.buffer.isResident || kept.has(from.buffer)) return undefined;
  const node = nodes[producer.node] as PlanNode;
  const target = node.launch.bindings[producer.binding] as Binding<Storage>;
  const parameter = node.launch.kernel.bindings[producer.binding];
  if (parameter?.access !== "write" || !coversSame(target, from)) return undefined;
  if (!accepts(parameter, to.dtype)) return undefined;
  const chain = roundings(target.rounding, halfOf(target.dtype), from.rounding, to.rounding);
  if (chain.at(-1) === to.dtype) chain.pop();
  if (chain.length > 1) return undefined;
  if (isTouchedBetween(nodes, to, producer.node, cast, "any")) return undefined;

  const moved = new Map<number, PlanNode>();
  moved.set(producer.node, withBinding(node, producer.binding, rebound(target, to, chain[0])));
  // Others that read the value follow it to its new place, where a plain copy has put the same elements.
  for (const { node: reader, binding } of uses.reads) {
    if (reader === cast) continue;
    const other = moved.get(reader) ?? (nodes[reader] as PlanNode);
    const read = other.launch.bindings[binding] as Binding<Storage>;
    const isPlain = to.dtype === from.dtype && !from.rounding && !to.rounding;
    if (!isPlain || !coversSame(read, from)) return undefined;
    if (isTouchedBetween(nodes, to, cast, reader, "write")) return undefined;
    moved.set(reader, withBinding(other, binding, rebound(read, to, read.rounding)));
  }
  for (const { launch } of moved.values()) if (hasConflict(launch)) return undefined;
  return nodes.map((n, i) => moved.get(i) ?? n).filter((_, i) => i !== cast);
}

const coversSame = (a: Binding<Storage>, b: Binding<Storage>): boolean =>
  a.offset === b.offset && a.length === b.length && a.dtype === b.dtype;

function foldIntoConsumers(
  nodes: readonly PlanNode[],
  cast: number,
  kept: ReadonlySet<Storage>,
): PlanNode[] | undefined {
  const [from, to] = (nodes[cast] as PlanNode).launch.bindings as [
    Binding<Storage>,
    Binding<Storage>,
  ];
  const uses = usesOf(nodes).get(to.buffer);
  if (!uses || uses.writes.length > 1 || to.buffer.isResident || kept.has(to.buffer))
    return undefined;
  const replaced = new Map<number, PlanNode>();
  for (const { node: reader, binding } of uses.reads) {
    const node = replaced.get(reader) ?? (nodes[reader] as PlanNode);
    const read = node.launch.bindings[binding] as Binding<Storage>;
    const parameter = node.launch.kernel.bindings[binding];
    if (read.offset !== to.offset || read.length !== to.length || isWrite(node, binding))
      return undefined;
    if (!isRead(node, binding) || !accepts(parameter, from.dtype)) return undefined;
    if (isTouchedBetween(nodes, from, cast, reader, "write")) return undefined;
    const chain = roundings(from.rounding, to.rounding, halfOf(to.dtype), read.rounding);
    if (chain[0] === from.dtype) chain.shift();
    if (chain.length > 1) return undefined;
    const moved = withBinding(node, binding, rebound(read, from, chain[0]));
    if (hasConflict(moved.launch)) return undefined;
    replaced.set(reader, moved);
  }
  return nodes.map((n, i) => replaced.get(i) ?? n).filter((_, i) => i !== cast);
}
