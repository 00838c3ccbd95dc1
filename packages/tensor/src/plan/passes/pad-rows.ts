import { bytesPerElement } from "@halfstep/device";
import {
  copyRowsApart,
  type FactorRows,
  factorRows,
  withFactorRows,
} from "@halfstep/kernels/planner";
import { Storage } from "../../record/storage.js";
import type { Pass, PlanNode } from "../graph.js";

/**
 * Copies factors of large products to where their rows lie a little further apart, for hardware that is a CPU: rows a multiple of
 * 4 KiB apart share few places of its caches, and push each other out while they are multiplied. A GPU would pay for the copies and
 * gain nothing. A copy takes memory only while its product runs, whether the step has room for it or not.
 */
export const padRows: Pass = ({ nodes, kept }) => ({ kept, nodes: nodes.flatMap(spread) });

/** Bytes: rows a multiple of this apart share the places of one row. */
const period = 4096;
/** Bytes that are put behind each row: an odd number of lines of the cache. */
const gap = 192;
/** Copying an element takes as long as a few hundred multiplications of it save. */
const enoughUses = 1024;
/** Fewer rows stay in the cache wherever they lie. */
const manyRows = 64;
/** Fewer rows of the other factor, likewise. */
const enoughDepth = 256;
/** What every device binds. */
const mostBytes = 2 ** 27;

function spread(node: PlanNode): readonly PlanNode[] {
  let { launch } = node;
  const copies: PlanNode[] = [];
  for (const factor of factorRows(launch)) {
    if (!isWorthCopying(factor)) continue;
    const { binding, rows, stride } = factor;
    const { buffer, offset, length, dtype } = binding;
    const bytes = bytesPerElement(dtype);
    const wide = stride + gap / bytes;
    const place = { offset: 0, length: rows * wide, dtype };
    const copy = { ...place, buffer: new Storage(buffer.owner, place.length * bytes) };
    if (copy.buffer.byteLength > mostBytes) continue;
    copies.push({
      ...node,
      sources: new Map(),
      // Bits are copied; the product rounds what it loads.
      launch: copyRowsApart(
        { input: { buffer, offset, length, dtype }, out: copy },
        { rows, length: stride, stride: wide },
      ),
    });
    launch = withFactorRows(launch, factor, { ...binding, ...copy }, wide);
  }
  return copies.length > 0 ? [...copies, { ...node, launch }] : [node];
}

const isWorthCopying = ({
  binding: { dtype },
  rows,
  stride,
  uses,
  depth,
}: FactorRows<Storage>): boolean =>
  (stride * bytesPerElement(dtype)) % period === 0 &&
  rows >= manyRows &&
  uses >= enoughUses &&
  depth >= enoughDepth;
