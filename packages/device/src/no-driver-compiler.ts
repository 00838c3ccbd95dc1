import type * as compiler from "./driver-compiler.js";

// Stands for `driver-compiler.ts` in builds with the condition `@halfstep/gpu-only`. Software drivers that compile a program at its first
// dispatch do so there, and the step waits for it.

export type { CompilerDevices } from "./driver-compiler.js";

export class DriverCompiler implements Pick<compiler.DriverCompiler, "compile"> {
  async compile(): Promise<void> {}
}
