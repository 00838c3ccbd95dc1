import type { Launch } from "@halfstep/device";
import { isFloating, isNarrow } from "@halfstep/formats/dtypes";
import { storedRange } from "@halfstep/kernels/planner";
import { observedLaunches, replaceLaunches } from "./observed-stores.js";
import type { Recording } from "./recording.js";
import type { Storage } from "./storage.js";

/**
 * Observes the rounding stores of backward passes: they count the numbers that become zero, for scalers that pick their scale by that
 * count. The results of the step keep their bits. A recording without such a scaler is unchanged.
 *
 * @param allocate memory of the recording.
 */
export function insertBackwardRanges(
  recording: Recording,
  allocate: (bytes: number) => Storage,
): void {
  const { backwardRanges, backwardPasses } = recording;
  for (const { words, passes } of backwardRanges) {
    const launches = new Set<Launch<Storage>>();
    for (const { after, last } of backwardPasses.slice(0, passes)) {
      const from = after ? recording.launches.indexOf(after) + 1 : 0;
      const to = recording.launches.indexOf(last) + 1;
      for (const launch of recording.launches.slice(from, to)) launches.add(launch);
    }
    const leavesStore = recording.isCounted;
    const observation = { observer: storedRange, words, slot: 0, leavesStore };
    replaceLaunches(recording, (launch) => {
      const result = launches.has(launch) ? roundedResult(launch) : undefined;
      return result === undefined
        ? [launch]
        : observedLaunches(launch, result, observation, allocate);
    });
  }
}

/** The index of the first result of a launch that its store rounds; undefined where there is none. */
function roundedResult({ kernel, bindings }: Launch<Storage>): number | undefined {
  const found = bindings.findIndex(
    ({ dtype, rounding }, b) =>
      kernel.bindings[b]?.access === "write" &&
      isFloating(dtype) &&
      (rounding !== undefined || isNarrow(dtype)),
  );
  return found < 0 ? undefined : found;
}
