import type { Binding, DType, HalfDType, Launch } from "@halfstep/device";
import { isFloat8, isHalf, isInteger } from "@halfstep/formats/dtypes";
import type { HostPart } from "../record/host-op.js";
import type { Storage } from "../record/storage.js";

/** The source of a runtime scalar: the position of a launch of the recording, and the scalar's name there. */
export interface ScalarSource {
  readonly launch: number;
  readonly name: string;
}

/** A launch on its way through the passes. */
export interface PlanNode {
  readonly launch: Launch<Storage>;
  /** The source of each runtime scalar. */
  readonly sources: ReadonlyMap<string, ScalarSource>;
  /** Positions in the recording of the launches that this node replaces: more than one where they were fused. */
  readonly recorded: readonly number[];
  readonly isBackward: boolean;
  /** Present where a function of the host carries out the node: the part of the recorded op that it is. */
  readonly part?: HostPart;
}

/** The graph that passes transform: nodes in program order, and the transients that outlive them. */
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
export const halfOf = (dtype: DType): HalfDType | undefined => (isHalf(dtype) ? dtype : undefined);

/** The formats through which a value passes, in order; more than one cannot be expressed by a single binding. */
export function roundings(...formats: readonly (HalfDType | undefined)[]): HalfDType[] {
  const chain: HalfDType[] = [];
  for (const format of formats) if (format && chain.at(-1) !== format) chain.push(format);
  return chain;
}

/**
 * The one format to which a value is rounded between the store of its producer and the loads of its consumers. "several": only memory can
 * stand between them, because formats differ, or loads read the stored bits as another dtype.
 */
export function roundingBetween(
  result: Binding<Storage>,
  loads: readonly Binding<Storage>[],
): HalfDType | undefined | "several" {
  // A binding can round to 8 bits only by storing in 8 bits.
  if (isFloat8(result.dtype)) return "several";
  const formats = new Set<HalfDType | undefined>();
  for (const { rounding, dtype } of loads) {
    if (dtype !== result.dtype && (isInteger(dtype) || isInteger(result.dtype))) return "several";
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
