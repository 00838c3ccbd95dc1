import { dumpPlan, type Runtime } from "@halfstep/tensor";
import type { TrainingHook } from "../hooks.js";

/**
 * A hook that writes the plan of the first step of this process, for the flag `--dump-plan`: launches with their ops,
 * remaining casts, slots and peak bytes. With accumulation it is the plan of the last micro-step, which includes the update.
 *
 * @example
 * hooks: { ...(options.dumpPlan && { plan: dumpFirstPlan(runtime, console.error) }) }
 */
export function dumpFirstPlan(runtime: Runtime, write: (text: string) => void): TrainingHook {
  let isShown = false;
  runtime.noteOps = true;
  return {
    afterStep() {
      if (isShown || !runtime.lastPlan) return;
      isShown = true;
      write(dumpPlan(runtime.lastPlan));
    },
  };
}
