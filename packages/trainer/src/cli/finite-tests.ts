import type { Summary } from "../summary.js";

/**
 * Reports the runs whose final test loss is not finite.
 * @returns the exit code of the program: 1 if there are any, else 0
 */
export function requireFiniteTests(
  { runs }: Pick<Summary, "runs">,
  say: (line: string) => void,
): number {
  const lost = runs.filter(({ test }) => !Number.isFinite(test.loss));
  if (lost.length === 0) return 0;
  say(
    `error: the test loss of ${lost.map(({ precision }) => precision).join(", ")} is not finite: training diverged; take a lower learning rate`,
  );
  return 1;
}
