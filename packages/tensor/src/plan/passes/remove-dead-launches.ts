import type { Storage } from "../../record/storage.js";
import { isRead, isWrite, type Pass, type PlanNode } from "../graph.js";

/** Drops launches whose results no launch reads. Launches that write resident storage and functions of the host stay. */
export const removeDeadLaunches: Pass = (graph) => {
  const wanted = new Set<Storage>(graph.kept);
  const live: PlanNode[] = [];
  for (let n = graph.nodes.length - 1; n >= 0; n--) {
    const node = graph.nodes[n] as PlanNode;
    const { bindings } = node.launch;
    const isLive =
      node.part !== undefined ||
      bindings.some(
        ({ buffer }, b) => isWrite(node, b) && (buffer.isResident || wanted.has(buffer)),
      );
    if (!isLive) continue;
    live.push(node);
    for (const [b, { buffer }] of bindings.entries()) if (isRead(node, b)) wanted.add(buffer);
  }
  return { ...graph, nodes: live.reverse() };
};
