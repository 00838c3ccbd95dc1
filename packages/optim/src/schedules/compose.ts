import { requireMilestones } from "./decay.js";
import { requireSchedules, type Schedule } from "./schedule.js";

/**
 * One schedule after the other, each counting from its own step 0: the second begins at `milestones[0]`, and so on. torch's
 * SequentialLR.
 *
 * @throws RangeError unless there is one milestone less than there are schedules, in ascending order. TypeError for what is no schedule.
 * @example
 * sequential([linearWarmup({ lr: 1e-3, warmupSteps: 100 }), cosine({ lr: 1e-3, totalSteps: 900 })], [100]);
 */
export function sequential(
  schedules: readonly [Schedule, ...Schedule[]],
  milestones: readonly number[],
): Schedule {
  requireSchedules("sequential", schedules);
  requireMilestones(milestones);
  if (milestones.length !== schedules.length - 1)
    throw new RangeError(
      `${schedules.length} schedules need ${schedules.length - 1} milestones, not ${milestones.length}`,
    );
  const rate = (step: number): number => {
    const at = milestones.filter((milestone) => milestone <= step).length;
    return (schedules[at] as Schedule)(step - (milestones[at - 1] ?? 0));
  };
  const { totalSteps } = schedules.at(-1) as Schedule;
  return totalSteps === undefined
    ? rate
    : Object.assign(rate, { totalSteps: (milestones.at(-1) ?? 0) + totalSteps });
}

/**
 * The product of schedules, step by step: torch's ChainedScheduler. One of them has the rate; give the others one of 1, so
 * that they are factors.
 *
 * @example
 * chained(exponential({ lr: 1e-3, gamma: 0.999 }), linearWarmup({ lr: 1, warmupSteps: 100 }));
 *
 * @throws TypeError without schedules, and for what is none.
 */
export function chained(...schedules: readonly [Schedule, ...Schedule[]]): Schedule {
  requireSchedules("chained", schedules);
  const rate = (step: number): number =>
    schedules.reduce((product, each) => product * each(step), 1);
  const lengths = schedules.map(({ totalSteps }) => totalSteps ?? Number.POSITIVE_INFINITY);
  const totalSteps = Math.max(...lengths);
  return totalSteps === Number.POSITIVE_INFINITY ? rate : Object.assign(rate, { totalSteps });
}
