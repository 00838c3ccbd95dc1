import type { Summary } from "../summary.js";

/**
 * Reports the runs whose final test loss is not finite, and those of which no step was applied.
 * @returns the exit code of the program: 1 where a loss is not finite, else 0
 */
export function reportOutcome(
  { runs }: Pick<Summary, "runs">,
  say: (line: string) => void,
): number {
  const named = (found: Summary["runs"]): string =>
    found.map(({ precision }) => precision).join(", ");
  const untrained = runs.filter(({ steps, appliedSteps }) => steps > 0 && appliedSteps === 0);
  const isFixed = ({ hyperparameters }: Summary["runs"][number]): boolean =>
    hyperparameters?.lossScale.dynamic === false;
  const warn = (found: Summary["runs"], why: string): void => {
    if (found.length > 0)
      say(`warning: no step of ${named(found)} was applied: the gradients overflowed at ${why}`);
  };
  warn(
    untrained.filter((run) => !isFixed(run)),
    "every loss scale, and the model is as it began; take a lower --init-scale, or more steps",
  );
  warn(
    untrained.filter(isFixed),
    "the fixed loss scale, and the model is as it began; take a lower one, or a dynamic one",
  );
  const lost = runs.filter(
    ({ test, isTested }) => isTested !== false && !Number.isFinite(test.loss),
  );
  if (lost.length === 0) return 0;
  say(
    `error: the test loss of ${named(lost)} is not finite: training diverged; take a lower learning rate`,
  );
  return 1;
}
