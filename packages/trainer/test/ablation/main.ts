import type { Device } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { allPasses, type PassName } from "@halfstep/tensor/internals";
import { effectsOf } from "./effects.js";
import { tablesOf } from "./report.js";
import { type TimeRatios, timedEffect, timeRatios } from "./times.js";

export { allPasses };

export interface AblationOptions {
  readonly passes: readonly PassName[];
  /** Milliseconds for the times of all passes; 0 for no times. */
  readonly timeBudget: number;
  readonly say: (progress: string) => void;
}

/** Drops each pass in turn, and tells as Markdown what that does to plans and to times, and on which adapter. */
export async function ablate({ passes, timeBudget, say }: AblationOptions): Promise<{
  readonly tables: string;
  readonly adapter: string | undefined;
}> {
  const effects = effectsOf(passes, say);
  const times = new Map<PassName, TimeRatios>();
  if (timeBudget === 0) return { tables: tablesOf({ effects, times }), adapter: undefined };
  const device: Device = await requestDevice();
  const { adapter } = device.capabilities;
  const end = performance.now() + timeBudget;
  const chosen = [...effects].flatMap(([pass, list]) => {
    const effect = timedEffect(list);
    return effect ? [{ pass, step: effect.step }] : [];
  });
  for (const [i, { pass, step }] of chosen.entries()) {
    say(`timing ${step.model} without ${pass}`);
    const share = (end - performance.now()) / (chosen.length - i);
    times.set(pass, await timeRatios(device, pass, step, share));
  }
  device.destroy();
  return { tables: tablesOf({ effects, times }), adapter: adapter.description };
}
