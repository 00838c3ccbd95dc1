import type * as kernelModule from "./kernels.js";
import type * as pieceModule from "./pieces.js";

// Stands for `kernels.ts` and `pieces.ts` in builds with the condition `@halfstep/gpu-only`: JavaScript converts arrays, as where an
// engine has no WebAssembly.

export const kernels: typeof kernelModule.kernels = () => undefined;
export const bulkBackend: typeof kernelModule.bulkBackend = () => "javascript";
export const encodePiece: typeof pieceModule.encodePiece = () => undefined;
export const decodePiece: typeof pieceModule.decodePiece = () => false;
export const roundedPiece: typeof pieceModule.roundedPiece = () => false;
