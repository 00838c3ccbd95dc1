import { readFileSync } from "node:fs";
import { drain, provideWebGpu } from "./browser.mjs";
import { versionOf } from "./versions.mjs";

const dist = new URL("node_modules/onnxruntime-web/dist/", import.meta.url);

/**
 * Opens onnxruntime-web.
 * @param {"webgpu" | "wasm"} backend
 */
export const open = async (backend, options) => {
  if (backend === "webgpu") provideWebGpu(options);
  const ort = await import(new URL("ort.webgpu.bundle.min.mjs", dist).href);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = readFileSync(new URL("ort-wasm-simd-threaded.asyncify.wasm", dist));
  ort.env.logLevel = "error";
  return { version: versionOf("onnxruntime-web"), library: { ort, backend }, drain };
};
