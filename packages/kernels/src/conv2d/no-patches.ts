import type * as patches from "./plan-patch.js";

// Stands for `plan-patch.ts` in builds with the condition `@halfstep/gpu-only`: CPU adapters then compute tiles, as GPUs do.

export const planPatch: typeof patches.planPatch = () => undefined;
export const planTurnedPatch: typeof patches.planTurnedPatch = () => undefined;
export const planRun: typeof patches.planRun = () => undefined;
