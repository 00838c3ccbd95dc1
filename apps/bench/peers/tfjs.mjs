import { createRequire } from "node:module";
import { drain, provideWebGpu } from "./browser.mjs";
import { versionOf } from "./versions.mjs";

/**
 * Opens TensorFlow.js.
 * @param {"webgpu" | "wasm" | "cpu"} backend
 */
export const open = async (backend, options) => {
  if (backend === "webgpu") provideWebGpu(options);
  const tf = createRequire(import.meta.url)("./node_modules/.bundled/tfjs.cjs");
  tf.setWasmPaths(
    new URL("node_modules/@tensorflow/tfjs-backend-wasm/dist/", import.meta.url).pathname,
  );
  if (!(await tf.setBackend(backend))) throw new Error(`tfjs has no backend ${backend} here`);
  await tf.ready();
  // Small tensors would be computed on the CPU behind our back.
  if (backend === "webgpu") tf.env().set("WEBGPU_CPU_HANDOFF_SIZE_THRESHOLD", 0);
  const flush = () => {
    const gpu = tf.backend();
    gpu.endComputePassEncoder?.();
    if (gpu.commandEncoder) gpu.submitQueue();
  };
  return { version: versionOf("@tensorflow/tfjs-core"), library: { tf, flush }, drain };
};
