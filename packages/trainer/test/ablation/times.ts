import { readFileSync } from "node:fs";
import type { Device } from "@halfstep/device";
import { gpuRuntime } from "@halfstep/tensor";
import type { PassName } from "@halfstep/tensor/internals";
import { type PlannedStep, plannedModels } from "../planned-steps.js";
import { type Reference, stepsOf } from "../reference-steps.js";
import { bytesRatio, type Effect, isChanged, launchesAdded, passesBut } from "./effects.js";

/** Times of a step without a pass as multiples of those with it: over pairs of steps, one after the other. */
export interface TimeRatios {
  readonly step: PlannedStep;
  /** On the wall. */
  readonly elapsed: readonly number[];
  /** Of the CPU, in the driver's threads, which other work on the machine changes little. Empty where the system does not tell. */
  readonly driver: readonly number[];
}

/** The step that is timed: on the software adapter, the one whose bytes the pass lessens most, and then its launches. */
export function timedEffect(effects: readonly Effect[]): Effect | undefined {
  return effects
    .filter((effect) => effect.step.hardware === "software" && isChanged(effect))
    .sort((a, b) => bytesRatio(b) - bytesRatio(a) || launchesAdded(b) - launchesAdded(a))[0];
}

/** Steps that compile what they run, and come to run the plan that they stay with. */
const warmUps = 3;
const leastPairs = 5;
const mostPairs = 41;

/** Times a step with and without a pass, by turns, for about so many milliseconds. */
export async function timeRatios(
  device: Device,
  pass: PassName,
  step: PlannedStep,
  milliseconds: number,
): Promise<TimeRatios> {
  const end = performance.now() + milliseconds;
  const reference = plannedModels.find(({ name }) => name === step.model) as Reference;
  const runs = [undefined, passesBut(pass)].map((passes) => {
    const runtime = gpuRuntime(device, passes ? { passes } : {});
    const train = stepsOf(runtime, reference)(step);
    return async (): Promise<Times> => {
      const before = now();
      const loss = await runtime.step(train);
      await device.settled();
      const after = now();
      loss.dispose();
      return { elapsed: after.elapsed - before.elapsed, driver: after.driver - before.driver };
    };
  });
  const [withAll, without] = runs as [() => Promise<Times>, () => Promise<Times>];
  for (let i = 0; i < warmUps; i++) for (const run of runs) await run();
  const [elapsed, driver]: [number[], number[]] = [[], []];
  for (let i = 0; i < leastPairs || (i < mostPairs && performance.now() < end); i++) {
    // Neither is always the second.
    const isEven = i % 2 === 0;
    const first = await (isEven ? withAll : without)();
    const second = await (isEven ? without : withAll)();
    const [all, dropped] = isEven ? [first, second] : [second, first];
    elapsed.push(dropped.elapsed / all.elapsed);
    driver.push(dropped.driver / all.driver);
  }
  return { step, elapsed, driver: driver.filter(Number.isFinite) };
}

/** Milliseconds. */
interface Times {
  readonly elapsed: number;
  readonly driver: number;
}

function now(): Times {
  const { user, system } = process.cpuUsage();
  return { elapsed: performance.now(), driver: (user + system) / 1000 - mainThread() };
}

/** CPU time of the thread that runs JavaScript, which polls while it waits. Linux alone tells. */
function mainThread(): number {
  try {
    const text = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8");
    return Number(text.split(" ", 1)[0]) / 1e6;
  } catch {
    return Number.NaN;
  }
}
