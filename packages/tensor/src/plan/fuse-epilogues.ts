import type { Binding } from "@halfstep/device";
import {
  type ElementwiseKernel,
  isElementwise,
  type ProductKernel,
  takesEpilogue,
  withEpilogue,
} from "@halfstep/kernels";
import type { Storage } from "../storage.js";
import {
  accepts,
  hasConflict,
  maxBindings,
  type Pass,
  type PlanNode,
  roundingBetween,
} from "./graph.js";
import { Rewriting } from "./rewriting.js";

/**
 * Weaves an elementwise launch into the store of the product (of matrices, or a convolution) whose result it alone reads:
 * bias, activation, residual, scale. The result is never written by itself, but rounds as if it had been.
 */
export const fuseEpilogues: Pass = (graph) => {
  const work = new Rewriting(graph);
  for (let n = 0; n < work.length; n++) {
    const product = work.at(n);
    if (!product || !takesEpilogue(product.launch.kernel)) continue;
    const position = work.onlyReaderOf(n);
    if (position === undefined) continue;
    const node = weave(product, work.at(position) as PlanNode);
    if (!node || hasConflict(node.launch)) continue;
    work.remove(n);
    work.replace(position, node);
  }
  return work.graph();
};

function weave(product: PlanNode, reader: PlanNode): PlanNode | undefined {
  const { launch } = reader;
  if (!isElementwise(launch.kernel) || reader.isBackward !== product.isBackward) return undefined;
  const { inputs } = launch.kernel.elementwise;
  const result = product.launch.bindings.at(-1) as Binding<Storage>;
  const results = [...inputs.keys()].filter((i) => launch.bindings[i]?.buffer === result.buffer);
  const fits = inputs.every((kind, i) => {
    if (results.includes(i)) return kind === "same" && launch.bindings[i]?.length === result.length;
    return kind !== "row" || launch.scalars[`x${i}_size0`] === product.launch.scalars.n;
  });
  const [out, ...others] = launch.bindings.slice(inputs.length);
  if (
    !fits ||
    !out ||
    others.length > 0 ||
    !accepts(product.launch.kernel.bindings.at(-1), out.dtype)
  )
    return undefined;
  const rounding = roundingBetween(
    result,
    results.map((i) => launch.bindings[i] as Binding<Storage>),
  );
  if (rounding === "several") return undefined;
  const fused = withEpilogue(
    product.launch as typeof product.launch & { kernel: ProductKernel },
    launch as typeof launch & { kernel: ElementwiseKernel },
    { results, ...(rounding && { rounding }) },
  );
  if (fused.bindings.length > maxBindings) return undefined;
  return {
    launch: fused,
    sources: new Map([...product.sources, ...reader.sources]),
    recorded: [...product.recorded, ...reader.recorded],
    isBackward: reader.isBackward,
  };
}
