/** A library on one of its backends. */
export interface LaneName {
  readonly name: string;
  readonly library: "halfstep" | "jax" | "tfjs" | "onnx" | "torch";
  readonly backend: "webgpu" | "wasm" | "cpu" | "native";
  readonly title: string;
  /** The bundle that its process runs, where it is not the one that measures. */
  readonly program?: string;
}

const lane = (
  library: LaneName["library"],
  backend: LaneName["backend"],
  title: string,
): LaneName => ({ name: `${library}-${backend}`, library, backend, title });

export const ours: LaneName = lane("halfstep", "webgpu", "Halfstep");

/** Everything that is measured, ours first. */
export const laneNames: readonly LaneName[] = [
  ours,
  lane("jax", "webgpu", "jax-js webgpu"),
  lane("jax", "wasm", "jax-js wasm"),
  lane("tfjs", "webgpu", "tfjs webgpu"),
  lane("tfjs", "wasm", "tfjs wasm"),
  lane("tfjs", "cpu", "tfjs cpu"),
  lane("onnx", "webgpu", "onnxruntime webgpu"),
  lane("onnx", "wasm", "onnxruntime wasm"),
  lane("torch", "native", "PyTorch"),
];

/**
 * Halfstep in a process that measures the machine's limits alone: large buffers and a second device would slow down or speed up
 * whatever else the process measures.
 */
export const limitsLane: LaneName = { ...ours, name: "halfstep-limits", title: "limits" };

/** Halfstep as another checkout's bundle has it. */
export const beforeLane = (program: string): LaneName => ({
  ...ours,
  name: "halfstep-before",
  title: "before",
  program,
});
