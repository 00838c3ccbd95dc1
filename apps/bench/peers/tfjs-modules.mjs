// Bundled before use: tfjs in Node comes as CommonJS without gradients, and the files that register them have imports that
// only bundlers resolve.
import "@tensorflow/tfjs-core/dist/register_all_gradients";
import "@tensorflow/tfjs-backend-cpu";
import "@tensorflow/tfjs-backend-webgpu";

export { setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
export * from "@tensorflow/tfjs-core";
