import type { Binding, DType, Kernel, KernelBinding, Launch } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import type { ShapedBinding } from "@halfstep/kernels";
import type { MemoryPlan } from "../src/plan/assign-memory.js";
import { isRead, isWrite, type PlanGraph, type PlanNode } from "../src/plan/graph.js";
import { Storage } from "../src/record/storage.js";

/** Graphs for tests of the planner's passes, made without a runtime. */

const owner = {};

/** A transient or resident storage of `length` elements, and the binding of all of it. */
function whole(length: number, dtype: DType): ShapedBinding<Storage> {
  const bytes = Math.ceil(bytesFor(dtype, length) / 16) * 16;
  return { buffer: new Storage(owner, bytes), offset: 0, length, dtype, shape: [length] };
}

export const transient = (length = 8, dtype: DType = "float32"): ShapedBinding<Storage> =>
  whole(length, dtype);

export function resident(length = 8, dtype: DType = "float32"): ShapedBinding<Storage> {
  const made = whole(length, dtype);
  made.buffer.memory = { byteLength: 0, bytes: new ArrayBuffer(0), wide: undefined };
  return made;
}

export function input(length = 8, dtype: DType = "float32"): ShapedBinding<Storage> {
  const made = whole(length, dtype);
  made.buffer.hostData = new Float32Array(length);
  return made;
}

/** A kernel of which only the bindings matter. */
export const kernelOf = (name: string, bindings: readonly KernelBinding[]): Kernel => ({
  name,
  variant: "",
  bindings,
  scalars: [],
  program: () => ({ code: "", workgroups: () => [1, 1, 1] }),
  reference() {},
});

/** A launch that is neither elementwise nor a copy, and reads and writes whole bindings. */
export const opaque = (
  reads: readonly Binding<Storage>[],
  writes: readonly Binding<Storage>[],
  options: Partial<KernelBinding> = {},
): Launch<Storage> => ({
  kernel: kernelOf("opaque", [
    ...reads.map((_, i) => ({ ...options, name: `x${i}`, access: "read" as const })),
    ...writes.map((_, i) => ({ ...options, name: `y${i}`, access: "write" as const })),
  ]),
  bindings: [...reads, ...writes],
  scalars: {},
});

/** A launch that changes a buffer in place. */
export const inPlace = (...buffers: readonly Binding<Storage>[]): Launch<Storage> => ({
  kernel: kernelOf(
    "inPlace",
    buffers.map((_, i) => ({ name: `x${i}`, access: "readwrite" })),
  ),
  bindings: buffers,
  scalars: {},
});

export function graph(
  launches: readonly Launch<Storage>[],
  { kept = [], backward = launches.length }: { kept?: readonly Storage[]; backward?: number } = {},
): PlanGraph {
  return {
    kept: new Set(kept),
    nodes: launches.map((launch, index): PlanNode => {
      const runtime = launch.kernel.scalars.filter((scalar) => scalar.runtime);
      return {
        launch,
        sources: new Map(runtime.map(({ name }) => [name, { launch: index, name }])),
        recorded: [index],
        isBackward: index >= backward,
      };
    }),
  };
}

export const names = ({ nodes }: PlanGraph): string[] =>
  nodes.map(({ launch }) => launch.kernel.name);

/** How a node stores or loads one of its operands: "float32", or "float32 through float16". */
export function storageOf({ nodes }: PlanGraph, node: number, operand: number): string {
  const binding = nodes[node]?.launch.bindings[operand];
  if (!binding) throw new RangeError(`node ${node} has no operand ${operand}`);
  const { dtype, rounding } = binding;
  return rounding ? `${dtype} through ${rounding}` : dtype;
}

/**
 * Simulates a graph on its slots with the names of values as their contents. Lists the mistakes: a value that was overwritten
 * before its last reader, a launch that reads and writes a slot, a slot that is too small, a kept value that is lost.
 */
export function memoryMistakes(
  { nodes, kept }: PlanGraph,
  { slotOf, slots }: MemoryPlan,
): string[] {
  const mistakes: string[] = [];
  const content = new Map<number, Storage>();
  const place = (storage: Storage): number => {
    const slot = slotOf.get(storage);
    if (slot === undefined) mistakes.push(`storage ${storage.id} has no slot`);
    else if ((slots[slot] ?? 0) < storage.byteLength) mistakes.push(`slot ${slot} is too small`);
    return slot ?? -1;
  };
  for (const storage of slotOf.keys()) if (storage.hostData) content.set(place(storage), storage);
  for (const storage of slotOf.keys())
    if (storage.hostData && content.get(place(storage)) !== storage)
      mistakes.push(`two inputs share slot ${place(storage)}`);
  for (const [n, node] of nodes.entries()) {
    const transients = node.launch.bindings
      .map(({ buffer }, b) => ({ buffer, b }))
      .filter(({ buffer }) => !buffer.isResident);
    for (const { buffer, b } of transients)
      if (isRead(node, b) && content.get(place(buffer)) !== buffer)
        mistakes.push(`node ${n} reads slot ${place(buffer)} after its value was overwritten`);
    for (const { buffer, b } of transients) {
      if (!isWrite(node, b)) continue;
      for (const other of transients)
        if (other.buffer !== buffer && place(other.buffer) === place(buffer))
          mistakes.push(`node ${n} writes slot ${place(buffer)}, which another operand has`);
      content.set(place(buffer), buffer);
    }
  }
  for (const storage of kept)
    if (content.get(place(storage)) !== storage) mistakes.push("a kept value was overwritten");
  return mistakes;
}
