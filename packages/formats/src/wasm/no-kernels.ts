import type * as kernelModule from "./kernels.js";
import type * as parameterModule from "./parameters.js";

// Stands for `kernels.ts` and `parameters.ts` in builds with the condition `@halfstep/gpu-only`: JavaScript converts arrays, as where an
// engine has no WebAssembly.

export const kernels: typeof kernelModule.kernels = () => undefined;
export const bulkBackend: typeof kernelModule.bulkBackend = () => "javascript";
export const writeEncodeParameters: typeof parameterModule.writeEncodeParameters = () => {};
export const writeDecodeParameters: typeof parameterModule.writeDecodeParameters = () => {};
