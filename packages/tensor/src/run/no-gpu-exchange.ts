import { LeftOutError } from "@halfstep/device";
import type * as exchange from "./gpu-exchange.js";

// Stands for `gpu-exchange.ts` in builds with the condition `@halfstep/inference-only`: programs that only infer exchange nothing.

export const GpuExchange = class {
  constructor() {
    throw new LeftOutError("@halfstep/inference-only", "host ops");
  }
} as unknown as typeof exchange.GpuExchange;
export type GpuExchange = exchange.GpuExchange;
