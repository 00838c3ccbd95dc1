import { bytesFor, elementsIn } from "@halfstep/formats/dtypes";
import {
  copyRowsApart,
  type FactorRows,
  factorRows,
  withFactorRows,
} from "@halfstep/kernels/planner";
import { Storage } from "../../record/storage.js";
import type { Pass, PlanNode } from "../graph.js";

/**
 * Copies factors of large products to rows with padding, on CPU adapters only: rows a multiple of 4 KiB apart map to few cache sets
 * and evict each other during the product. A GPU gains nothing from the copies. A copy takes memory only while its product runs,
 * and may raise the peak.
 */
export const padRows: Pass = ({ nodes, kept }) => ({ kept, nodes: nodes.flatMap(spread) });

/** In bytes: rows a multiple of this apart map to the same cache sets. */
const period = 4096;
/** Bytes of padding behind each row: an odd number of cache lines. */
const gap = 192;
/** Copying an element costs as much time as a few hundred of its multiplications save. */
const enoughUses = 1024;
/** Fewer rows stay in the cache at any distance. */
const manyRows = 64;
/** The same limit for rows of the other factor. */
const enoughDepth = 256;
/** The largest binding of every device, in bytes. */
const mostBytes = 2 ** 27;

function spread(node: PlanNode): readonly PlanNode[] {
  let { launch } = node;
  const copies: PlanNode[] = [];
  for (const factor of factorRows(launch)) {
    if (!isWorthCopying(factor)) continue;
    const { binding, rows, stride } = factor;
    const { buffer, offset, length, dtype } = binding;
    const wide = stride + elementsIn(dtype, gap);
    const place = { offset: 0, length: rows * wide, dtype };
    const copy = { ...place, buffer: new Storage(buffer.owner, bytesFor(dtype, place.length)) };
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
  bytesFor(dtype, stride) % period === 0 &&
  rows >= manyRows &&
  uses >= enoughUses &&
  depth >= enoughDepth;
