import { dumpPlan, type Runtime } from "@halfstep/tensor";
import type { TrainingHook } from "../hooks.js";

/**
 * A hook that shows the plan of the first step of this process, for the flag `--dump-plan`: launches with the ops that they
 * compute, casts that are left, slots and peak bytes. Of an accumulation it is the plan of the last micro-step, which updates.
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
