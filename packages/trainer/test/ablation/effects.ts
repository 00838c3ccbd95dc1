import { allPasses, type PassName } from "@halfstep/tensor/internals";
import {
  hardwareClasses,
  type PlanCounts,
  type PlannedStep,
  plannedModels,
  planSteps,
} from "../planned-steps.js";

/** What dropping a pass does to the plan of a step. */
export interface Effect {
  readonly step: PlannedStep;
  /** With every pass. */
  readonly all: PlanCounts;
  /** With every pass but the one. */
  readonly without: PlanCounts;
}

/** What dropping each pass does to every planned step, each pass by itself. */
export function effectsOf(
  passes: readonly PassName[],
  say: (progress: string) => void,
): ReadonlyMap<PassName, readonly Effect[]> {
  const effects = new Map<PassName, Effect[]>(passes.map((pass) => [pass, []]));
  for (const reference of plannedModels) {
    say(`planning ${reference.name}`);
    for (const hardware of hardwareClasses) {
      const planned = planSteps(reference, hardware);
      for (const [pass, list] of effects) {
        const without = planSteps(reference, hardware, passesBut(pass));
        for (const [i, [step, all]] of planned.entries())
          list.push({ step, all, without: (without[i] as (typeof without)[number])[1] });
      }
    }
  }
  return effects;
}

export const passesBut = (dropped: PassName): readonly PassName[] =>
  allPasses.filter((pass) => pass !== dropped);

export const isChanged = ({ all, without }: Effect): boolean => all.hash !== without.hash;

/** Bytes that go between memory and launches. */
const movedBytes = ({ loadedBytes, storedBytes }: PlanCounts): number => loadedBytes + storedBytes;

/** Launches that dropping the pass adds. */
export const launchesAdded = ({ all, without }: Effect): number => without.launches - all.launches;

/** Bytes that are moved without the pass, as a multiple of those with it. */
export const bytesRatio = ({ all, without }: Effect): number =>
  movedBytes(without) / movedBytes(all);

/** Memory at the peak without the pass, as a multiple of that with it. */
export const peakRatio = ({ all, without }: Effect): number => without.peakBytes / all.peakBytes;
