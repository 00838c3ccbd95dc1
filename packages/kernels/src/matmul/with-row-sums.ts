import type { Binding, LaunchTarget } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import {
  launchMatmul,
  type MatmulAttributes,
  type MatmulOperands,
  wrongLength,
} from "../matmul.js";
import { requireTarget } from "../operands.js";
import { reduce } from "../reductions/reduce.js";
import {
  blockRowSums,
  laneRowSums,
  ownRowSums,
  type RowSumsSupport,
  rowSumStore,
} from "./row-sums.js";
import { sumPartsDefinition } from "./split-k.js";

const addSums = `  if (index * 4u >= s.count) {
    let quads = (s.m + 3u) >> 2u;
    let quad = index - (s.count + 3u) / 4u;
    var row_sum = vec4f();
    for (var part = 0u; part < s.splits; part++) { row_sum += load_sums_of_parts(part * quads + quad); }
    store_row_sums(quad, row_sum);
    continue;
  }
`;

const support: RowSumsSupport = {
  store: rowSumStore,
  ofLanes: laneRowSums,
  ofInvocation: ownRowSums,
  ofBlock: blockRowSums,
  sumParts: defineKernel(sumPartsDefinition(addSums)),
};

/** Operands of a matrix product that also adds up its left factor. */
export interface MatmulWithRowSumsOperands<B> extends MatmulOperands<B> {
  /** Σ over k of aᵀ, [m]. */
  readonly rowSums: Binding<B>;
}

/**
 * out = aᵀ · op(b), as `matmul` with `transA` and without a batch, and the sums of the left factor's rows, from loads of the product:
 * they need no launch of their own.
 *
 * @throws RangeError where lengths and shape disagree.
 */
export function matmulWithRowSums<B>(
  target: LaunchTarget<B>,
  { rowSums: sums, ...operands }: MatmulWithRowSumsOperands<B>,
  attributes: Omit<MatmulAttributes, "batch" | "transA">,
): void {
  requireTarget("matmulWithRowSums", target);
  const { m, n, k } = attributes;
  if (sums.length !== m) wrongLength("rowSums", sums.length, [m], [m]);
  if (n === 0 && m > 0)
    reduce(target, { input: operands.a, out: sums }, { op: "sum", outer: 1, size: k, inner: m });
  launchMatmul(target, operands, { ...attributes, batch: 1, transA: true }, { sums, support });
}
