import { type Binding, type DType, type HalfDType, isFloat8, type Launch } from "@halfstep/device";
import type { Storage } from "../record/storage.js";

/** Where a launch takes a runtime scalar from: a launch of the recording, by position, and the scalar's name there. */
export interface ScalarSource {
  readonly launch: number;
  readonly name: string;
}

/** A launch on its way through the passes. */
export interface PlanNode {
  readonly launch: Launch<Storage>;
  /** For each runtime scalar. */
  readonly sources: ReadonlyMap<string, ScalarSource>;
  /** Positions in the recording of the launches that this one stands for: more than one where they were fused. */
  readonly recorded: readonly number[];
  readonly isBackward: boolean;
}

/** What passes transform: nodes in program order, and the transients that must survive them. */
export interface PlanGraph {
  readonly nodes: readonly PlanNode[];
  readonly kept: ReadonlySet<Storage>;
}

/** A pass is a pure function. It changes no bit of any result (the as-if rule). */
export type Pass = (graph: PlanGraph) => PlanGraph;

export const isWrite = (node: PlanNode, binding: number): boolean =>
  node.launch.kernel.bindings[binding]?.access !== "read";
export const isRead = (node: PlanNode, binding: number): boolean =>
  node.launch.kernel.bindings[binding]?.access !== "write";

/** The dtype where it is a 16-bit format, to which a store rounds. */
export const halfOf = (dtype: DType): HalfDType | undefined =>
  dtype === "float16" || dtype === "bfloat16" ? dtype : undefined;

/** The formats through which a value passes, in order; more than one cannot be expressed by a single binding. */
export function roundings(...formats: readonly (HalfDType | undefined)[]): HalfDType[] {
  const chain: HalfDType[] = [];
  for (const format of formats) if (format && chain.at(-1) !== format) chain.push(format);
  return chain;
}

/** The one format through which a value went from the store of its producer to those who load it. */
export function roundingBetween(
  result: Binding<Storage>,
  loads: readonly Binding<Storage>[],
): HalfDType | undefined | "several" {
  // No binding rounds to 8 bits but by its storage.
  if (isFloat8(result.dtype)) return "several";
  const formats = new Set<HalfDType | undefined>();
  for (const { rounding } of loads) {
    const chain = roundings(result.rounding, halfOf(result.dtype), rounding);
    if (chain.length > 1) return "several";
    formats.add(chain[0]);
  }
  return formats.size > 1 ? "several" : [...formats][0];
}

export const sameRange = (a: Binding<Storage>, b: Binding<Storage>): boolean =>
  a.buffer === b.buffer && a.offset === b.offset && a.length === b.length && a.dtype === b.dtype;

/** The node with another binding at one place. */
export function withBinding(node: PlanNode, index: number, binding: Binding<Storage>): PlanNode {
  const bindings = node.launch.bindings.map((old, b) => (b === index ? binding : old));
  return { ...node, launch: { ...node.launch, bindings } };
}
